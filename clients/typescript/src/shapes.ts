/** What of the events of OpenAI and Anthropic is text: chat completions, responses, messages. */
import type { Event, EventShapes, Step } from "./events.js";

export type Family = "chat" | "responses" | "messages";

/** Return a function that forms a copy of `event` with a text at `path`. */
function at(event: Event, ...path: (string | number)[]): (text: string) => Event {
  return (text) => {
    const copy = structuredClone(event);
    let place: Event = copy;
    for (const step of path.slice(0, -1)) place = place[step] as Event;
    place[path.at(-1) as string | number] = text;
    return copy;
  };
}

/** Chunks of a chat completion; choices may be interleaved. */
class ChatEvents implements EventShapes {
  readonly restored = new Map<string, string>();
  readonly #names = new Map<string, string>();
  readonly #open = new Map<number, Set<string>>();

  constructor(readonly tools: readonly string[]) {}

  steps(event: Event): Step[] {
    const choices: Event[] = event["choices"] ?? [];
    if (choices.length === 0) return [{ do: "pass", event: () => event }];
    return choices.flatMap((choice) => this.#choice({ ...event, choices: [choice] }, choice));
  }

  #choice(event: Event, choice: Event): Step[] {
    const index: number = choice["index"] ?? 0;
    const delta: Event = choice["delta"] ?? {};
    const steps: Step[] = [];
    const rest: Event = { ...delta };
    for (const member of ["content", "refusal", "reasoning_content", "reasoning"]) {
      const text: unknown = delta[member];
      if (typeof text !== "string" || text === "") continue;
      const only = bare(event, choice, { [member]: text });
      const channel = this.#begin(index, `${index} ${member}`);
      steps.push({ do: "feed", channel, text, event: at(only, "choices", 0, "delta", member) });
      delete rest[member];
    }
    const calls: Event[] = delta["tool_calls"] ?? [];
    const passing = calls.flatMap((call) => this.#call(event, choice, call, steps));
    if (passing.length > 0) rest["tool_calls"] = passing;
    else if (calls.length > 0) delete rest["tool_calls"];
    if (choice["finish_reason"] != null) {
      for (const channel of this.#open.get(index) ?? []) steps.push({ do: "close", channel });
      this.#open.delete(index);
    } else if (Object.keys(rest).length === 0 && Object.keys(delta).length > 0 && event["usage"] == null) {
      return steps;
    }
    const isChanged = JSON.stringify(rest) !== JSON.stringify(delta);
    const dropped = isChanged && "logprobs" in choice ? { logprobs: null } : {};
    const passed = { ...choice, delta: rest, ...dropped };
    steps.push({ do: "pass", event: () => ({ ...event, choices: [passed] }) });
    return steps;
  }

  /** Take the arguments out of a call whose tool may see originals; return what passes at once. */
  #call(event: Event, choice: Event, call: Event, steps: Step[]): Event[] {
    const index: number = choice["index"] ?? 0;
    const number: number = call["index"] ?? 0;
    const key = `${index} tool ${number}`;
    const called: Event = call["function"] ?? {};
    if (called["name"]) this.#names.set(key, called["name"]);
    const tool = this.#names.get(key) ?? "";
    const text: unknown = called["arguments"];
    if (!this.tools.includes(tool) || typeof text !== "string" || text === "") return [call];
    const piece = bare(event, choice, { tool_calls: [{ index: number, function: { arguments: text } }] });
    const path = ["choices", 0, "delta", "tool_calls", 0, "function", "arguments"];
    steps.push({ do: "collect", channel: this.#begin(index, key), text, tool, event: at(piece, ...path) });
    return "id" in call || called["name"] ? [{ ...call, function: { ...called, arguments: "" } }] : [];
  }

  #begin(index: number, channel: string): string {
    const channels = this.#open.get(index) ?? new Set();
    this.#open.set(index, channels.add(channel));
    return channel;
  }
}

/** Return a chunk that has this delta and nothing that ends the choice. */
function bare(event: Event, choice: Event, delta: Event): Event {
  const only: Event = { ...choice, delta, finish_reason: null };
  if ("logprobs" in only) only["logprobs"] = null;
  return { ...event, choices: [only], ...("usage" in event ? { usage: null } : {}) };
}

/** Events of Anthropic's messages: a channel for each content block. */
class MessageEvents implements EventShapes {
  readonly restored = new Map<string, string>();
  readonly #names = new Map<number, string>();

  constructor(readonly tools: readonly string[]) {}

  /** Put texts and arguments into their channels; signed reasoning passes as it came. */
  steps(event: Event): Step[] {
    const index: number = event["index"] ?? 0;
    const channel = String(index);
    const delta: Event = event["delta"] ?? {};
    const block: Event = event["content_block"] ?? {};
    if (block["type"] === "tool_use") this.#names.set(index, block["name"] ?? "");
    const passed: Step = { do: "pass", event: () => event };
    if (event["type"] === "content_block_stop") return [{ do: "close", channel }, passed];
    if (delta["type"] === "text_delta") {
      return [{ do: "feed", channel, text: delta["text"], event: at(event, "delta", "text") }];
    }
    const tool = this.#names.get(index) ?? "";
    if (delta["type"] === "input_json_delta" && this.tools.includes(tool)) {
      return [{ do: "collect", channel, tool, text: delta["partial_json"], event: at(event, "delta", "partial_json") }];
    }
    return [passed];
  }
}

const TEXTS = ["response.output_text", "response.refusal", "response.reasoning_summary_text"];

/** Events of OpenAI's responses; texts that later events repeat agree with what was streamed. */
class ResponseEvents implements EventShapes {
  readonly restored = new Map<string, string>();
  readonly #names = new Map<unknown, string>();

  constructor(readonly tools: readonly string[]) {}

  steps(event: Event): Step[] {
    const kind = String(event["type"] ?? "");
    const stem = kind.slice(0, Math.max(0, kind.lastIndexOf(".")));
    const item: Event = event["item"] ?? {};
    const output: unknown = event["output_index"];
    if (kind === "response.output_item.added" && item["type"] === "function_call") {
      this.#names.set(output, item["name"] ?? "");
    }
    const channel = JSON.stringify([stem, output, event["content_index"], event["summary_index"]]);
    const tool = this.#names.get(output) ?? "";
    if (kind.endsWith(".delta") && TEXTS.includes(stem)) {
      const plain = "logprobs" in event ? { ...event, logprobs: [] } : event;
      return [{ do: "feed", channel, text: event["delta"], event: at(plain, "delta") }];
    }
    if (kind === "response.function_call_arguments.delta" && this.tools.includes(tool)) {
      return [{ do: "collect", channel, tool, text: event["delta"], event: at(event, "delta") }];
    }
    return [{ do: "close", channel }, { do: "pass", event: () => this.#replaced(event) as Event }];
  }

  #replaced(value: unknown): unknown {
    if (typeof value === "string") return this.restored.get(value) ?? value;
    if (Array.isArray(value)) return value.map((element) => this.#replaced(element));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, this.#replaced(member)]));
  }
}

export const SHAPES: Record<Family, new (tools: readonly string[]) => EventShapes> = {
  chat: ChatEvents,
  responses: ResponseEvents,
  messages: MessageEvents,
};
