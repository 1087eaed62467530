/** Wrap a client of OpenAI or Anthropic, where its base URL cannot be changed: redact before, restore after. */
import { Sluice, type Item } from "./client.js";
import { NotCoveredError } from "./errors.js";
import type { Event } from "./events.js";
import type { Family } from "./shapes.js";

/** Type of the item with the parameters of a call beside its messages; every string in it is read as text. */
const PARAMETERS = "dev.sluice.parameters";
/** Parameters that only machines read. */
const MACHINE = new Set([
  ...["model", "stream", "stream_options", "service_tier", "reasoning_effort", "previous_response_id", "include"],
  ...["modalities", "betas", "tool_choice", "truncation", "verbosity", "encoding_format", "inference_geo"],
  ...["container", "prompt_cache_retention"],
]);
/** Members of a client that send no content. */
const PASSED = new Set(["models", "baseURL"]);

/** One call: which parameter holds its items, and where the answer has texts. */
interface Covered {
  items: string;
  family?: Family;
  parts(answer: Event): Item[];
  joined(answer: Event, items: Item[]): Event;
}

const CHAT: Covered = {
  items: "messages",
  family: "chat",
  parts: (answer) => (answer["choices"] as Event[]).map((choice) => choice["message"] as Item),
  joined: (answer, items) => ({
    ...answer,
    choices: (answer["choices"] as Event[]).map((choice, number) => {
      const message = items[number];
      const isChanged = JSON.stringify(message) !== JSON.stringify(choice["message"]);
      return { ...choice, message, ...(isChanged && "logprobs" in choice ? { logprobs: null } : {}) };
    }),
  }),
};
const RESPONSE: Covered = {
  items: "input",
  family: "responses",
  parts: (answer) => (answer["output"] ?? []) as Item[],
  joined: (answer, output) => ({
    ...answer,
    output,
    // The package puts all texts together in one.
    ...("output_text" in answer ? { output_text: spoken(output as Event[]) } : {}),
  }),
};
const MESSAGE: Covered = {
  items: "messages",
  family: "messages",
  parts: (answer) => [{ role: "assistant", content: answer["content"] as unknown }],
  joined: (answer, [message]) => ({ ...answer, content: (message as Event)["content"] }),
};
const UNANSWERED = { parts: () => [], joined: (answer: Event) => answer };
const CALLS: Record<string, Record<string, Covered>> = {
  openai: {
    "chat.completions.create": CHAT,
    "responses.create": RESPONSE,
    "embeddings.create": { items: "input", ...UNANSWERED },
  },
  anthropic: { "messages.create": MESSAGE, "messages.countTokens": { items: "messages", ...UNANSWERED } },
};

function spoken(output: Event[]): string {
  return output
    .filter((item) => item["type"] === "message")
    .flatMap((item) => item["content"] as Event[])
    .map((part) => (part["type"] === "output_text" ? String(part["text"]) : ""))
    .join("");
}

/**
 * Return `client` with every covered call redacted and its answer restored, whole or streamed.
 *
 * `client` is one of the packages `openai` and `@anthropic-ai/sdk`. `sluice` is made from the environment where it is
 * left out. `scope` is the conversation, else a new one for this wrapped client. Of tool calls only the arguments of
 * `tools` get originals. Any call that is not covered throws `NotCoveredError`: it would pass unredacted.
 */
export function wrap<Client extends object>(
  client: Client,
  sluice: Sluice = new Sluice(),
  { scope = `wrapped-${crypto.randomUUID()}`, tools = [] }: { scope?: string; tools?: readonly string[] } = {},
): Client {
  const calls = CALLS[libraryOf(client)];
  if (calls === undefined) throw new TypeError("Give a client of the package openai or @anthropic-ai/sdk.");
  const bound = (target: Event, name: string, call: Covered) => async (parameters: Event, options?: unknown) => {
    const { items, joined } = outbound(call, parameters);
    const safe = await sluice.redact(items, { scope });
    const answer: Event = await target[name](joined(safe.content), options);
    const family = call.family;
    if (family === undefined) return answer;
    if (parameters["stream"]) {
      return new RestoredStream(answer, (events) => sluice.restoreEvents(events, { family, scope, tools }));
    }
    const plain = JSON.parse(JSON.stringify(answer)) as Event;
    const restored = await sluice.restore(call.parts(plain), { scope, tools: [...tools] });
    const whole = call.joined(plain, restored.content);
    return Object.defineProperty(whole, "_request_id", { value: answer["_request_id"], enumerable: false });
  };
  return node(client, "", calls, bound) as Client;
}

function libraryOf(client: object): string {
  const names = new Set<string>();
  for (let kind: unknown = client.constructor; typeof kind === "function"; kind = Object.getPrototypeOf(kind)) {
    names.add(kind.name);
  }
  return names.has("OpenAI") ? "openai" : names.has("Anthropic") ? "anthropic" : "";
}

/** Return a part of a client: covered calls are replaced, everything else is refused. */
function node(
  target: object,
  path: string,
  calls: Record<string, Covered>,
  bound: (target: Event, name: string, call: Covered) => unknown,
): object {
  return new Proxy(target, {
    get(_, name) {
      // Whoever awaits or prints the client asks for these, and sends nothing.
      if (typeof name === "symbol" || name === "then" || name === "toJSON") return undefined;
      const step = path === "" ? name : `${path}.${name}`;
      const member = (target as Event)[name];
      const call = calls[step];
      if (call !== undefined) return bound(target, name, call);
      if (Object.keys(calls).some((covered) => covered.startsWith(`${step}.`))) {
        return node(member as object, step, calls, bound);
      }
      if (PASSED.has(step)) return member;
      throw new NotCoveredError(`${step} is not covered: what it sends would pass unredacted.`);
    },
  });
}

/** Return the items to redact, and how the call is put together from the redacted ones. */
function outbound(call: Covered, parameters: Event): { items: Item[]; joined: (redacted: Item[]) => Event } {
  const values = JSON.parse(JSON.stringify(parameters)) as Event;
  const texts: unknown = values[call.items];
  const isSingle = typeof texts === "string";
  const items = isSingle ? [texts] : ((texts ?? []) as Item[]);
  const isText = (value: unknown) => typeof value === "string" || (typeof value === "object" && value !== null);
  const other = Object.fromEntries(
    Object.entries(values).filter(([name, value]) => name !== call.items && !MACHINE.has(name) && isText(value)),
  );
  const joined = (redacted: Item[]) => {
    const changed = redacted.at(-1) as Event;
    const body: Event = { ...values, ...(changed["parameters"] as Event) };
    if (call.items in values) body[call.items] = isSingle ? redacted[0] : redacted.slice(0, -1);
    return body;
  };
  return { items: [...items, { type: PARAMETERS, parameters: other }], joined };
}

/** A stream of a provider's package with its texts restored. */
export class RestoredStream {
  readonly #source: Event;
  readonly #restore: (events: AsyncIterable<Event>) => AsyncGenerator<Event, void, undefined>;

  constructor(source: Event, restore: (events: AsyncIterable<Event>) => AsyncGenerator<Event, void, undefined>) {
    this.#source = source;
    this.#restore = restore;
  }

  /** What ends the provider's answer, as that of the package's own stream. */
  get controller(): AbortController {
    return this.#source["controller"] as AbortController;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    try {
      yield* this.#restore(this.#source as unknown as AsyncIterable<Event>);
    } finally {
      this.controller?.abort();
    }
  }
}
