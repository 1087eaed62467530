export * from "./client.js";
export type * from "./admin.js";
export type { Event } from "./events.js";
export type { Family } from "./shapes.js";
export { wrap, type RestoredStream } from "./wrapping.js";
export { ClientTimeoutError, NotCoveredError, ProtocolError, SluiceError, UnreachableError, type Problem } from "./errors.js";
export type { Options } from "./http.js";
export type { components, operations, paths } from "./schema.js";
