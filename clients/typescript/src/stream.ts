/** Streaming restoration: text goes to the service while the model writes it, and comes back restored. */
import { ProtocolError, UnreachableError, errorOf, type Problem } from "./errors.js";
import type { Http } from "./http.js";

const PATH = "/api/v1/middleware/pii_restoration/stream";
const LINES = "application/x-ndjson";

type Restored = { text?: string; done?: true; error?: Partial<Problem> };

/** Yield what is restored, as it settles. Leaving early ends the request and the source. */
export async function* restoredStream(
  http: Http,
  chunks: AsyncIterable<string> | Iterable<string>,
  given: Record<string, unknown>,
): AsyncGenerator<string, void, undefined> {
  const stop = new AbortController();
  const source = records(chunks, given);
  let cause: unknown;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { value, done } = await source.next();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (fault) {
        cause = fault;
        controller.error(fault);
      }
    },
    async cancel() {
      await source.return();
    },
  });
  const init = { method: "POST", body, duplex: "half", signal: stop.signal, redirect: "error" };
  const headers = { ...http.headers, "Content-Type": LINES, Accept: LINES };
  try {
    const response = await http.fetch(`${http.url}${PATH}`, { ...init, headers } as RequestInit);
    if (!response.ok || response.body === null) throw await http.failure(response);
    for await (const record of parsed(response.body)) {
      if (record.error !== undefined) throw errorOf(record.error);
      if (record.done) return;
      if (record.text) yield record.text;
    }
    throw new UnreachableError("The connection was lost before the answer came.");
  } catch (fault) {
    if (cause !== undefined) throw cause;
    throw http.fault(fault);
  } finally {
    stop.abort();
  }
}

async function* records(
  chunks: AsyncIterable<string> | Iterable<string>,
  given: Record<string, unknown>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  yield encoder.encode(`${JSON.stringify({ arguments: given })}\n`);
  for await (const text of chunks) yield encoder.encode(`${JSON.stringify({ text })}\n`);
}

async function* parsed(body: ReadableStream<Uint8Array>): AsyncGenerator<Restored, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") continue;
      try {
        yield JSON.parse(line) as Restored;
      } catch {
        throw new ProtocolError("A line of the answer is not JSON.");
      }
    }
  }
}
