/** Errors of a call. `code` is stable and meant for programs; no message ever holds content of a context. */
import type { components } from "./schema.js";

export type Problem = components["schemas"]["Problem"];

export class SluiceError extends Error {
  readonly code: string;
  readonly requestId: string | undefined;
  /** Seconds to wait; undefined where waiting does not help. */
  readonly retryAfter: number | undefined;
  readonly details: Record<string, unknown>;
  readonly status: number | undefined;

  constructor(message: string, code: string, members: Partial<Omit<SluiceError, "code">> = {}) {
    super(message);
    this.name = new.target.name;
    this.code = code;
    this.requestId = members.requestId;
    this.retryAfter = members.retryAfter;
    this.details = members.details ?? {};
    this.status = members.status;
  }
}

/** The service could not be reached, or the connection was lost before the answer came. */
export class UnreachableError extends SluiceError {
  constructor(message: string) {
    super(message, "unreachable");
  }
}

/** No answer came within the client's own time limit; whether the work was done is unknown. */
export class ClientTimeoutError extends SluiceError {
  constructor(message: string) {
    super(message, "client_timeout");
  }
}

/** A wrapped client has no such call: what it sends would pass unredacted. */
export class NotCoveredError extends SluiceError {
  constructor(message: string) {
    super(message, "not_covered");
  }
}

/** The answer is not from Sluice: another service or a proxy answered. */
export class ProtocolError extends SluiceError {
  constructor(message: string) {
    super(message, "protocol_error");
  }
}

/** Return the error of a problem document (RFC 9457). */
export function errorOf(problem: Partial<Problem>, response?: Response): SluiceError {
  const waiting = Number(response?.headers.get("retry-after") ?? NaN);
  const details: Record<string, unknown> = { ...problem.details };
  if (problem.pointer !== undefined) details["pointer"] = problem.pointer;
  const said = problem.detail ?? problem.title ?? "The call failed without an explanation of Sluice.";
  const members: { -readonly [Name in keyof SluiceError]?: SluiceError[Name] } = { details };
  const requestId = problem.request_id ?? response?.headers.get("x-request-id") ?? undefined;
  if (requestId !== undefined) members.requestId = requestId;
  if (response !== undefined) members.status = response.status;
  if (Number.isFinite(waiting)) members.retryAfter = waiting;
  return new SluiceError(said, problem.code ?? "unknown", members);
}
