/** The client: the same calls, under the same names, as the Python client. */
import { Audit, Erasures, Keys, Policies, Subjects } from "./admin.js";
import { ProtocolError } from "./errors.js";
import { restoredEvents, type Event } from "./events.js";
import { Http, type Options } from "./http.js";
import { SHAPES, type Family } from "./shapes.js";
import { restoredStream } from "./stream.js";

export type Item = string | { [member: string]: unknown };
/** A text, or the items of a context: content blocks, messages, calls and results of tools. */
export type Context = string | readonly Item[];
export type Mode = "handle" | "mask" | "hash" | "remove" | "block" | "report";

/** The arguments of `pii_redaction`; what each means stands in its schema (`listMiddleware`). */
export interface RedactArguments {
  scope?: string | null;
  aggressiveness?: "standard" | "strict";
  entities?: string[] | null;
  exclude?: string[];
  allow_list?: string[];
  deny_list?: string[];
  language?: string;
  names?: "fast" | "accurate";
  numbers?: "string" | "report" | "block";
  mode?: Mode | Record<string, Mode>;
  handles_in_input?: "keep" | "escape";
  strict?: boolean;
  uris?: "report" | "change";
  unscanned?: "report" | "block";
  canonical?: boolean;
  tagged?: boolean;
  ttl_s?: number | null;
  returnMapping?: boolean;
}

/** The arguments of `pii_restoration`. */
export interface RestoreArguments {
  scope?: string | null;
  redactions?: Record<string, string> | null;
  exact?: boolean;
  positions?: "safe" | "all";
  strict?: boolean;
  tools?: string[];
}

export interface MiddlewareInfo {
  name: string;
  title?: string | null;
  description: string;
  phase: "outbound" | "inbound";
  inputSchema: Record<string, unknown>;
}

/** A context after a middleware, in its original shape, and the middleware's metadata. */
export class InvokeResult {
  constructor(
    readonly content: Item[],
    readonly metadata: Record<string, unknown>,
  ) {}

  /** The text of all plain text items, joined by line feeds; throws where that would leave something out. */
  get text(): string {
    return this.content
      .filter((item) => typeof item === "string" || (item["type"] !== "image" && item["type"] !== "audio"))
      .map((item) => {
        if (typeof item === "string") return item;
        if (item["type"] === "text" && !("role" in item)) return String(item["text"]);
        throw new TypeError("This context has items that are no plain text: read messages or content.");
      })
      .join("\n");
  }

  /** The messages of a conversation; throws where an item is none. */
  get messages(): { role: string; [member: string]: unknown }[] {
    return this.content.map((item) => {
      if (typeof item === "string" || typeof item["role"] !== "string") {
        throw new TypeError("This context has items that are no messages: read content.");
      }
      return { ...item, role: item["role"] };
    });
  }
}

export class RedactResult extends InvokeResult {
  /** The vault scope that holds the originals. */
  get scope(): string {
    return String(this.metadata["scope"]);
  }

  get redactions(): { handle: string; type: string }[] {
    const listed = this.metadata["redactions"] ?? [];
    if (Array.isArray(listed)) return listed as { handle: string; type: string }[];
    return Object.keys(listed).map((handle) => ({ handle, type: handle.replace(/_[^_]*$/, "").toLowerCase() }));
  }

  /** Handle to original; only with `returnMapping` and the role restorer. */
  get mapping(): Record<string, string> | undefined {
    const listed = this.metadata["redactions"];
    return Array.isArray(listed) ? undefined : (listed as Record<string, string> | undefined);
  }
}

export class RestoreResult extends InvokeResult {
  /** How many handles were not restored. */
  get unresolved(): number {
    return Number(this.metadata["unresolved"] ?? 0);
  }
}

export class Sluice {
  readonly keys: Keys;
  readonly policies: Policies;
  readonly audit: Audit;
  readonly subjects: Subjects;
  readonly erasures: Erasures;
  readonly #http: Http;

  constructor(options: Options = {}) {
    this.#http = new Http(options);
    this.keys = new Keys(this.#http);
    this.policies = new Policies(this.#http);
    this.audit = new Audit(this.#http);
    this.subjects = new Subjects(this.#http);
    this.erasures = new Erasures(this.#http);
  }

  /** The middlewares that this key may invoke. */
  async listMiddleware(): Promise<MiddlewareInfo[]> {
    const listed = (await this.#http.json("GET", "/api/v1/middleware")) as { middleware: MiddlewareInfo[] };
    return listed.middleware;
  }

  /** Run the middleware `name` on a context; `repeatable` allows to send it again after a lost connection. */
  async invoke(
    name: string,
    context: Context,
    given: Record<string, unknown> = {},
    { repeatable = false } = {},
  ): Promise<InvokeResult> {
    return new InvokeResult(...(await this.#invoked(name, context, given, repeatable)));
  }

  /** Replace personal data with handles. */
  async redact(context: Context, given: RedactArguments = {}): Promise<RedactResult> {
    return new RedactResult(...(await this.#invoked("pii_redaction", context, given, given.scope != null)));
  }

  /** Restore the originals of a scope. */
  async restore(context: Context, given: RestoreArguments): Promise<RestoreResult> {
    return new RestoreResult(...(await this.#invoked("pii_restoration", context, given, true)));
  }

  /** Restore a text while it arrives; only an incomplete handle is delayed. */
  restoreStream(
    chunks: AsyncIterable<string> | Iterable<string>,
    given: RestoreArguments,
  ): AsyncGenerator<string, void, undefined> {
    return restoredStream(this.#http, chunks, { ...given });
  }

  /**
   * Restore the events of a model's stream, of one family, as JSON.
   *
   * Texts come as they arrive, each channel for itself. The arguments of `tools` come whole, when the call is complete;
   * other arguments keep their handles.
   */
  restoreEvents(
    events: AsyncIterable<Event> | Iterable<Event>,
    { family, scope, tools = [] }: { family: Family; scope: string; tools?: readonly string[] },
  ): AsyncGenerator<Event, void, undefined> {
    const whole = async (tool: string, args: string): Promise<string> => {
      const call = { type: "function_call", call_id: "call", name: tool, arguments: args };
      const restored = await this.restore([call], { scope, tools: [tool] });
      return String((restored.content[0] as Event)["arguments"]);
    };
    const stream = (chunks: AsyncIterable<string>) => this.restoreStream(chunks, { scope });
    return restoredEvents(events, new SHAPES[family](tools), stream, whole);
  }

  /** Whether the service is ready. */
  async health(): Promise<{ ready: boolean }> {
    const response = await this.#http
      .fetch(`${this.#http.url}/readyz`, { signal: AbortSignal.timeout(this.#http.timeout) })
      .catch((fault: unknown) => {
        throw this.#http.fault(fault);
      });
    await response.body?.cancel();
    return { ready: response.ok };
  }

  async #invoked(
    name: string,
    context: Context,
    given: object,
    repeatable: boolean,
  ): Promise<[Item[], Record<string, unknown>]> {
    const items = typeof context === "string" ? [{ type: "text", text: context }] : context;
    const path = `/api/v1/middleware/${encodeURIComponent(name)}/invoke`;
    const body = { arguments: given, context: items };
    const result = (await this.#http.json("POST", path, body, {}, repeatable)) as
      | { content?: Item[]; metadata?: Record<string, unknown> }
      | undefined;
    if (!Array.isArray(result?.content)) {
      throw new ProtocolError("The result has no content: does Sluice listen at this address?");
    }
    return [result.content, result.metadata ?? {}];
  }
}
