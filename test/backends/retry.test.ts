/** When a failed request is sent again. */
import { describe, expect, test } from "bun:test";
import { BackendError } from "../../src/backends/backend.ts";
import { parseRetryAfter, providerError } from "../../src/backends/provider-error.ts";
import { maxRetries, retryDelay, whyNot } from "../../src/backends/retry.ts";
import { Fault } from "../../src/fault.ts";

const failed = (detail: Partial<BackendError["detail"]> = {}) =>
  new BackendError(new Fault("unavailable", "x"), { retryable: true, ...detail });
const middle = () => 0.5;

describe("the policy", () => {
  test("waits longer each time, and gives up after three repetitions", () => {
    const waits = [0, 1, 2, 3].map((attempt) => retryDelay(failed(), attempt, middle));
    expect(waits).toEqual([1000, 2000, 4000, undefined]);
    expect(maxRetries).toBe(3);
    expect(whyNot(failed(), 3)).toBe("tried 4 times");
    expect(whyNot(failed(), 2)).toBeUndefined();
  });

  test("spreads the waits of many agents", () => {
    expect(retryDelay(failed(), 0, () => 0)).toBe(750);
    expect(retryDelay(failed(), 0, () => 0.999)).toBeCloseTo(1250, -1);
  });

  test("grants the provider's wish, and never comes early", () => {
    expect(retryDelay(failed({ retryAfter: 3000 }), 0, () => 0)).toBe(3000);
    expect(retryDelay(failed({ retryAfter: 0 }), 2, () => 0)).toBe(0);
    expect(retryDelay(failed({ retryAfter: 300_000 }), 0, () => 0)).toBe(300_000);
  });

  test("does not stand still for an hour, and says so", () => {
    const error = failed({ retryAfter: 3_600_000 });
    expect(retryDelay(error, 0)).toBeUndefined();
    expect(whyNot(error, 0)).toBe("the provider asks to wait 60 minutes; at most 5 are waited for");
  });

  test("leaves alone what asking again will not mend", () => {
    for (const error of [
      failed({ retryable: false }),
      new Fault("invalid", "x"),
      new Error("x"),
      "x",
      undefined,
    ]) {
      expect(retryDelay(error, 0)).toBeUndefined();
      expect(whyNot(error, 0)).toBeUndefined();
    }
  });
});

describe("refusals", () => {
  const refusal = (status: number, message = "x", type?: string, fields: Record<string, string> = {}) =>
    providerError({ backend: "b", status, headers: new Headers(fields), body: { error: { message, type } } })
      .detail;

  test.each([408, 409, 425, 429, 500, 502, 503, 504, 529])("%d may be repeated", (status) => {
    expect(refusal(status).retryable).toBe(true);
  });

  test.each([400, 401, 402, 403, 404, 413, 422])("%d may not", (status) => {
    expect(refusal(status).retryable).toBe(false);
  });

  test("a used-up allowance is not waited for, a limit per minute is", () => {
    expect(refusal(429, "You exceeded your current quota, please check your plan").retryable).toBe(false);
    expect(
      refusal(429, "You exceeded your current quota", undefined, { "retry-after": "39" }).retryable,
    ).toBe(true);
    expect(refusal(429, "x", "insufficient_quota", { "retry-after": "1" }).retryable).toBe(false);
  });

  test.each([
    "This model's maximum context length is 4097 tokens, however you requested 5360 tokens",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "Input is too long for requested model.",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Please reduce the length of the messages or completion.",
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 250000 tokens",
    "Requested token count exceeds the model's maximum context length of 131072 tokens.",
    "prompt token count of 130000 exceeds the limit of 128000",
    "the input length exceeds the context length",
    "tokens to keep from the initial prompt is greater than the context length",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  ])("overflow: %s", (message) => {
    expect(refusal(400, message)).toMatchObject({ overflow: true, retryable: false });
  });

  test.each([
    [400, ""],
    [400, "max_tokens is too large: 99999. This model supports at most 16384 completion tokens"],
    [
      400,
      "Invalid value for 'tools[0].function.name': string too long. Expected a string with maximum length 64",
    ],
    [413, "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000"],
    [429, "Too many tokens, please wait before trying again."],
    [401, "prompt is too long"],
  ])("no overflow: %d %s", (status, message) => {
    expect(refusal(status, message)).not.toHaveProperty("overflow");
  });
});

test("retry-after: milliseconds, seconds, dates, nonsense", () => {
  const now = Date.parse("2026-11-30T12:00:00Z");
  const read = (fields: Record<string, string>) => parseRetryAfter(new Headers(fields), now);
  expect(read({ "retry-after-ms": "250.5" })).toBe(250.5);
  expect(read({ "retry-after-ms": "x", "retry-after": "2" })).toBe(2000);
  expect(read({ "retry-after": "0.5" })).toBe(500);
  expect(read({ "retry-after": "-3" })).toBe(0);
  expect(read({ "retry-after": "Mon, 30 Nov 2026 12:00:07 GMT" })).toBe(7000);
  expect(read({ "retry-after": "Mon, 30 Nov 2026 11:00:00 GMT" })).toBe(0);
  expect(read({ "retry-after": "soon" })).toBeUndefined();
  expect(read({ "retry-after": "" })).toBeUndefined();
  expect(read({})).toBeUndefined();
});
