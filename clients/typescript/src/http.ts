/** One request: its address and key, its time limit, its repetition where that is safe, its errors. */
import { ClientTimeoutError, ProtocolError, SluiceError, UnreachableError, errorOf } from "./errors.js";

export interface Options {
  /** Address without a path; default: `SLUICE_URL`, else `http://127.0.0.1:8000`. */
  url?: string;
  /** API key; default: `SLUICE_API_KEY`. */
  key?: string;
  /** Milliseconds that one attempt may take to answer. */
  timeout?: number;
  /** How often a refused attempt is sent again where that is safe. */
  retries?: number;
  /** Sends the requests instead of the global `fetch`. */
  fetch?: typeof fetch;
}

export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;

const LONGEST_PAUSE_S = 10;

function variable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

export class Http {
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly timeout: number;
  readonly fetch: typeof fetch;
  readonly #retries: number;

  constructor(options: Options) {
    this.url = (options.url ?? variable("SLUICE_URL") ?? "http://127.0.0.1:8000").replace(/\/+$/, "");
    const key = options.key ?? variable("SLUICE_API_KEY");
    this.headers = key ? { Authorization: `Bearer ${key}` } : {};
    this.timeout = options.timeout ?? 60_000;
    this.#retries = options.retries ?? 2;
    this.fetch = options.fetch ?? ((...given) => globalThis.fetch(...given));
  }

  /** Send one request and return its answer, which is JSON or empty. */
  async json(method: string, path: string, body?: unknown, query: Query = {}, repeatable = method === "GET"): Promise<unknown> {
    const text = await this.text(method, path, body, query, repeatable);
    try {
      return text === "" ? undefined : JSON.parse(text);
    } catch {
      throw new ProtocolError("The answer is not JSON: does Sluice listen at this address?");
    }
  }

  /** Send one request and return its answer as it is. */
  async text(method: string, path: string, body?: unknown, query: Query = {}, repeatable = method === "GET"): Promise<string> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#once(method, path, body, query);
      } catch (error) {
        const pause = this.#pause(error, repeatable);
        if (pause === undefined || attempt >= this.#retries) throw error;
        await new Promise((resolve) => setTimeout(resolve, pause * 1000));
      }
    }
  }

  /** Return the error of a response that is none of success. */
  async failure(response: Response): Promise<SluiceError> {
    const text = await response.text();
    try {
      return errorOf(JSON.parse(text), response);
    } catch {
      return errorOf({}, response);
    }
  }

  async #once(method: string, path: string, body: unknown, query: Query): Promise<string> {
    const url = new URL(`${this.url}${path}`);
    for (const [name, value] of Object.entries(query)) {
      if (value === undefined || value === null) continue;
      for (const each of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(each));
    }
    const init: RequestInit = { method, headers: { ...this.headers }, redirect: "error" };
    if (body !== undefined) {
      init.headers = { ...this.headers, "Content-Type": "application/json" };
      init.body = JSON.stringify(body);
    }
    try {
      const response = await this.fetch(url, { ...init, signal: AbortSignal.timeout(this.timeout) });
      if (!response.ok) throw await this.failure(response);
      return await response.text();
    } catch (fault) {
      throw this.fault(fault);
    }
  }

  /** Return the error for what `fetch` threw; it never repeats the library's message. */
  fault(fault: unknown): SluiceError {
    if (fault instanceof SluiceError) return fault;
    if (fault instanceof DOMException && fault.name === "TimeoutError") {
      return new ClientTimeoutError(`No answer came within ${this.timeout} ms.`);
    }
    return new UnreachableError(`No service answers at ${this.url}, or the connection was lost.`);
  }

  #pause(error: unknown, repeatable: boolean): number | undefined {
    if (!(error instanceof SluiceError)) return undefined;
    if (error instanceof UnreachableError) return repeatable ? 0.1 : undefined;
    const untouched = error.code === "rate_limited" || error.code === "overloaded";
    if (!(untouched || repeatable) || error.retryAfter === undefined) return undefined;
    return error.retryAfter <= LONGEST_PAUSE_S ? error.retryAfter : undefined;
  }
}
