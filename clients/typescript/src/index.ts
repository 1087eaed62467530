export * from "./client.js";
export type * from "./admin.js";
export { ClientTimeoutError, ProtocolError, SluiceError, UnreachableError, type Problem } from "./errors.js";
export type { Options } from "./http.js";
export type { components, operations, paths } from "./schema.js";
