/** Records and messages without secrets. What a person has written stays as it is: it is theirs to say to whom they like. */
import type { Message, ModelCall } from "../backends/backend.ts";
import type { Secrets } from "../config/secrets.ts";
import type { NewRecord } from "./records.ts";

/** As it may go to disk. What a provider wants back verbatim (`opaque`) stays, since another text would be refused. */
export function maskedRecord<R extends NewRecord>(record: R, secrets: Secrets): R {
  switch (record.t) {
    case "assistant":
      return { ...record, ...maskedAnswer(record, secrets) };
    case "result":
    case "note":
      return { ...record, text: secrets.mask(record.text) };
    case "end":
      return record.reason === undefined ? record : { ...record, reason: secrets.mask(record.reason) };
    default:
      return record;
  }
}

/** As it may go to a provider, who need not be the one that has seen the secret before. */
export function maskedMessage(message: Message, secrets: Secrets): Message {
  switch (message.role) {
    case "assistant":
      return { ...message, ...maskedAnswer(message, secrets) };
    case "tool":
      return { ...message, text: secrets.mask(message.text) };
    default:
      return message;
  }
}

function maskedAnswer(answer: { text: string; reasoning?: string; calls: ModelCall[] }, secrets: Secrets) {
  const { text, reasoning, calls } = answer;
  return {
    text: secrets.mask(text),
    ...(reasoning !== undefined && { reasoning: secrets.mask(reasoning) }),
    calls: calls.map((call) => ({ ...call, args: secrets.mask(call.args) })),
  };
}
