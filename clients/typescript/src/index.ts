// A client of the wakelog protocol for Node and browsers, without dependencies.

export { readBundle } from "./bundle.ts";
export type { BundleOptions, BundleReport } from "./bundle.ts";
export { Client } from "./client.ts";
export type { SessionFilter } from "./client.ts";
export type { BundleKeys } from "./encryption.ts";
export type { Hashes } from "./hashes.ts";
export { BrokenBundleError } from "./json.ts";
export type { Json, JsonObject } from "./json.ts";
export { WakelogError } from "./problem.ts";
export type * from "./protocol.ts";
export { Session } from "./session.ts";
export type { AppendOptions, EventFilter } from "./session.ts";
export { stateHash } from "./state.ts";
export type { TailItem, TailOptions } from "./tail.ts";
export type { ClientOptions } from "./transport.ts";
