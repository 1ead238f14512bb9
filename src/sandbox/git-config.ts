/** Which lines of a git config cannot make git run anything: what `git init`, `clone`, `remote add` and `branch` write. See git-config(1). */

const plainKeys: Record<string, string> = {
  core: "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks worktree autocrlf eol",
  remote: "url pushurl fetch",
  branch: "remote merge rebase",
  submodule: "url active",
  user: "name email",
  extensions: "objectformat refstorage",
  init: "defaultbranch",
  pull: "rebase",
  push: "default",
};

/** The text without all other lines; the text itself where there are none. */
export function plainConfig(text: string): string {
  let keys: string[] = [];
  const lines = text.split("\n").filter((line) => {
    const section = /^\s*\[\s*([\w-]+)(?:\s+"(?:[^"\\\n]|\\.)*")?\s*\]\s*$/.exec(line);
    if (section) {
      keys = (plainKeys[section[1]!.toLowerCase()] ?? "").split(" ");
      return keys[0] !== "";
    }
    if (/^\s*([#;].*)?$/.test(line)) return true;
    const [, key, value] = /^\s*([\w-]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    // A backslash at the end would make the next line a part of this one; a transport helper or an option can be a program.
    const harmless = value !== undefined && !/\\$|^"?(-|[\w+.-]+::)/.test(value);
    return harmless && keys.includes(key!.toLowerCase());
  });
  return lines.join("\n");
}
