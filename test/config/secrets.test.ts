import { describe, expect, test } from "bun:test";
import { isOwnKey, looksSecret, Secrets } from "../../src/config/secrets.ts";

const key = "sk-proj-aB3/+x9aB3/+x9-and=more";
const known = new Secrets();
known.learnConfig({
  OLLIE_OPENAI_KEY: key,
  OLLIE_BOX_URL: "https://me:pa%40ssword1@box/v1",
  OLLIE_MODEL: "gpt-long-name",
});
const masked = "[masked: OLLIE_OPENAI_KEY]";

describe("names", () => {
  test.each(["OLLIE_OPENAI_KEY", "OLLIE_MY_SERVER_KEY", "OLLIE_COPILOT_TOKEN"])(
    "%s is a key of ollie's own",
    (name) => {
      expect(isOwnKey(name)).toBe(true);
      expect(looksSecret(name)).toBe(true);
    },
  );

  test.each([
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "CLIENT_SECRET",
    "DB_PASSWORD",
    "PGPASSWORD",
    "mysql_passwd",
  ])("%s says that it is secret", (name) => {
    expect(isOwnKey(name)).toBe(false);
    expect(looksSecret(name)).toBe(true);
  });

  test.each(["PATH", "MONKEY", "OLLIE_MODEL", "TOKENIZERS_PARALLELISM", "KEYBOARD", "SECRETS_FILE"])(
    "%s does not",
    (name) => {
      expect(looksSecret(name)).toBe(false);
    },
  );
});

describe("a text", () => {
  test("without secrets is left alone", () => {
    expect(known.mask("nothing to see, sk-proj-aB4, gpt-long-name")).toBe(
      "nothing to see, sk-proj-aB4, gpt-long-name",
    );
    expect(new Secrets().mask(key)).toBe(key);
  });

  test.each([
    ["as it is", `a ${key}b${key}`, `a ${masked}b${masked}`],
    ["in a URL", `?k=${encodeURIComponent(key)}&x`, `?k=${masked}&x`],
    [
      "the password of an address",
      "https://me:pa@ssword1@box https://me:pa%40ssword1@box",
      "https://me:[masked: OLLIE_BOX_URL]@box https://me:[masked: OLLIE_BOX_URL]@box",
    ],
  ])("has none left: %s", (_how, text, without) => {
    expect(known.mask(text)).toBe(without);
  });

  test.each(["", "u", "us", "usr", "user:"])("has none left in Base64, behind %p", (before) => {
    for (const after of ["", "!", "!!"])
      for (const alphabet of ["base64", "base64url"] as const) {
        const text = Buffer.from(before + key + after).toString(alphabet);
        expect(known.mask(text)).toContain(masked);
        // What is left of the value is the characters that it shares with its neighbours.
        expect(known.mask(text).replace(masked, "").length).toBeLessThan(before.length * 2 + 8);
      }
  });

  test("keeps short values: they are met by chance", () => {
    const secrets = new Secrets();
    secrets.learnSession({ API_KEY: "ollama" });
    expect(secrets.mask("ollama serve")).toBe("ollama serve");
  });

  test("has the whole value masked where one begins with another", () => {
    const secrets = new Secrets();
    secrets.learnSession({ A_TOKEN: "12345678", B_TOKEN: "12345678-and-more" });
    expect(secrets.mask("12345678-and-more 12345678")).toBe("[masked: B_TOKEN] [masked: A_TOKEN]");
  });

  test("has a value masked that looks like a pattern", () => {
    const secrets = new Secrets();
    secrets.learnSession({ A_TOKEN: "a.*(b)[c]$^|{1}\\d" });
    expect(secrets.mask("a.*(b)[c]$^|{1}\\d aXX(b)")).toBe("[masked: A_TOKEN] aXX(b)");
  });
});

describe("a text in pieces", () => {
  test("has none left wherever it is cut", () => {
    const text = `before ${key} after`;
    for (let first = 0; first <= text.length; first++)
      for (let second = first; second <= text.length; second++) {
        const masker = known.stream();
        const out = [text.slice(0, first), text.slice(first, second), text.slice(second)].map((piece) =>
          masker.push(piece),
        );
        expect(out.join("") + masker.end()).toBe(`before ${masked} after`);
      }
  });

  test("keeps back no more than what may be a secret", () => {
    const masker = known.stream();
    expect(masker.push("a line\n")).toBe("a line\n");
    expect(masker.push("and sk-pro")).toBe("and ");
    expect(masker.push("ject")).toBe("sk-project");
    expect(masker.push("s")).toBe("");
    expect(masker.end()).toBe("s");
  });
});

describe("what is known", () => {
  test("stays known when there is a new value", () => {
    const secrets = new Secrets();
    secrets.learnConfig({ OLLIE_X_KEY: "old-value-1" });
    expect(secrets.mask("old-value-1 new-value-2")).toBe("[masked: OLLIE_X_KEY] new-value-2");
    secrets.learnConfig({ OLLIE_X_KEY: "new-value-2" });
    expect(secrets.mask("old-value-1 new-value-2")).toBe("[masked: OLLIE_X_KEY] [masked: OLLIE_X_KEY]");
  });

  test("of a session is the session's alone, and the server's everybody's", () => {
    const server = new Secrets();
    const [one, other] = [new Secrets(server), new Secrets(server)];
    one.learnSession({ GH_TOKEN: "session-value", HARMLESS: "harmless-value" });
    server.learnConfig({ OLLIE_X_KEY: "server-value" });
    const text = "session-value server-value harmless-value";
    expect(one.mask(text)).toBe("[masked: GH_TOKEN] [masked: OLLIE_X_KEY] harmless-value");
    expect(other.mask(text)).toBe("session-value [masked: OLLIE_X_KEY] harmless-value");
  });
});
