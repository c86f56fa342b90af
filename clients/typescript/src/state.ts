// The state of a session: deltas (RFC 6902) applied one after another, and a hash that is equal for equal states.

import type { Hashes } from "./hashes.ts";
import { fromHex, toHex } from "./hashes.ts";
import { BrokenBundleError, canonical, clone, get, has, isObject, isText, set } from "./json.ts";
import type { Json, JsonObject } from "./json.ts";

/** How many levels of each part of the state are leaves of their own; one level where nothing is said. */
const LEVELS: ReadonlyMap<string, number> = new Map([
  ["status", 0],
  ["turn", 0],
  ["lease", 0],
  ["goal", 0],
  ["last_error", 0],
  ["working_set", 2],
  ["data", Number.POSITIVE_INFINITY],
]);

const escaped = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");

function* leaves(pointer: string, value: Json, levels: number): Generator<[string, Json]> {
  if (levels > 0 && isObject(value)) {
    yield [pointer, {}];
    for (const [name, part] of Object.entries(value)) yield* leaves(`${pointer}/${escaped(name)}`, part, levels - 1);
  } else {
    yield [pointer, value];
  }
}

/** The `state_hash` of a state. */
export function stateHash(state: JsonObject, hashes: Hashes): string {
  let total = 0n;
  const add = (leaf: [string, Json]): void => {
    total += BigInt(`0x${toHex(hashes.shake256(canonical(leaf), 512).reverse())}`);
  };
  add(["", {}]);
  for (const [name, part] of Object.entries(state)) {
    if (name === "view") continue;
    for (const leaf of leaves(`/${escaped(name)}`, part, LEVELS.get(name) ?? 1)) add(leaf);
  }
  const hex = BigInt.asUintN(4096, total).toString(16).padStart(1024, "0");
  return toHex(hashes.sha256(fromHex(hex).reverse()));
}

function tokens(path: Json | undefined, seq: number): string[] {
  if (!isText(path)) throw new BrokenBundleError("an operation's path is not a string", seq);
  if (path === "") return [];
  if (!path.startsWith("/") || /~(?![01])/.test(path)) {
    throw new BrokenBundleError(`"${path}" is not a JSON Pointer`, seq);
  }
  const escapedTokens = path.slice(1).split("/");
  return escapedTokens.map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function index(token: string, below: number, path: Json | undefined, seq: number): number {
  if (!/^(0|[1-9][0-9]{0,14})$/.test(token) || Number(token) >= below) {
    throw new BrokenBundleError(`the delta does not fit: "${String(path)}" is no place in the list`, seq);
  }
  return Number(token);
}

/** The state after a delta. The state that is given changes. */
export function applied(state: JsonObject, delta: Json, kind: string, seq: number): JsonObject {
  if (!Array.isArray(delta)) throw new BrokenBundleError("the delta is not a list", seq);
  let after = state;
  for (const operation of delta) {
    if (!isObject(operation)) throw new BrokenBundleError("the delta holds something that is not an operation", seq);
    after = appliedOne(after, operation, kind, seq);
  }
  return after;
}

function appliedOne(state: JsonObject, operation: JsonObject, kind: string, seq: number): JsonObject {
  const op = get(operation, "op");
  const path = get(operation, "path");
  if (op !== "add" && op !== "remove" && op !== "replace") {
    throw new BrokenBundleError(`the delta holds an operation "${String(op)}"`, seq);
  }
  if (op !== "remove" && !has(operation, "value")) {
    throw new BrokenBundleError(`the operation at "${String(path)}" has no value`, seq);
  }
  const value = op === "remove" ? null : clone(operation["value"] as Json);
  const way = tokens(path, seq);
  const last = way.pop();
  if (last === undefined) {
    if (op !== "replace" || kind !== "session.opened" || !isObject(value)) {
      throw new BrokenBundleError(`${kind} must not ${op} the whole document`, seq);
    }
    return value;
  }
  const misfit = new BrokenBundleError(`the delta does not fit: nothing is at "${String(path)}"`, seq);
  let place: Json = state;
  for (const token of way) {
    if (Array.isArray(place)) place = place[index(token, place.length, path, seq)] as Json;
    else if (isObject(place) && has(place, token)) place = place[token] as Json;
    else throw misfit;
  }
  if (Array.isArray(place)) {
    const at = index(last, place.length + (op === "add" ? 1 : 0), path, seq);
    if (op === "add") place.splice(at, 0, value);
    else if (op === "remove") place.splice(at, 1);
    else place[at] = value;
  } else if (isObject(place)) {
    if (op !== "add" && !has(place, last)) throw misfit;
    if (op === "remove") delete place[last];
    else set(place, last, value);
  } else {
    throw misfit;
  }
  return state;
}
