// JSON as the format needs it: exact members, exact text, canonical bytes (RFC 8785).

export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [name: string]: Json };

/** Something does not hold. `seq` is the event it was found at; 0: at none in particular. */
export class BrokenBundleError extends Error {
  readonly seq: number;

  constructor(sentence: string, seq = 0) {
    super(sentence);
    this.name = "BrokenBundleError";
    this.seq = seq;
  }
}

// Members are read with `get` and written with `set`: a member may be called __proto__ or constructor.
export const has = (object: JsonObject, name: string): boolean => Object.hasOwn(object, name);

export function get(object: JsonObject, name: string): Json | undefined;
export function get<T extends Json>(object: JsonObject, name: string, otherwise: T): Json;
export function get(object: JsonObject, name: string, otherwise?: Json): Json | undefined {
  return has(object, name) ? object[name] : otherwise;
}

export function set(object: JsonObject, name: string, value: Json): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const isInt = (value: unknown): value is number => Number.isSafeInteger(value);
export const isText = (value: unknown): value is string => typeof value === "string";
export const isHash = (value: unknown): value is string => isText(value) && /^[0-9a-f]{64}$/.test(value);
export const clone = <T extends Json>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

export function parse(given: string | Uint8Array, what: string, seq = 0): Json {
  let text = given;
  if (!isText(text)) {
    try {
      text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
    } catch {
      throw new BrokenBundleError(`${what} is not UTF-8`, seq);
    }
  }
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new BrokenBundleError(`${what} is not JSON: ${(error as Error).message}`, seq);
  }
}

export function parseObject(given: string | Uint8Array, what: string, seq = 0): JsonObject {
  const value = parse(given, what, seq);
  if (!isObject(value)) throw new BrokenBundleError(`${what} is not a JSON object`, seq);
  return value;
}

const SURROGATE_ALONE = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/;

export function utf8(text: string, what: string, seq = 0): Uint8Array {
  if (SURROGATE_ALONE.test(text)) throw new BrokenBundleError(`${what} holds a lone surrogate`, seq);
  return new TextEncoder().encode(text);
}

/** The text of RFC 8785: members sorted by UTF-16 code units, numbers as ECMAScript writes them. */
export function canonicalText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (isObject(value)) {
    const members = Object.keys(value).sort();
    return `{${members.map((name) => `${JSON.stringify(name)}:${canonicalText(value[name] as Json)}`).join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new BrokenBundleError("a number is not finite");
  if (isText(value) && SURROGATE_ALONE.test(value)) throw new BrokenBundleError("a value holds a lone surrogate");
  return JSON.stringify(value); // -0 becomes 0
}

export const canonical = (value: Json): Uint8Array => utf8(canonicalText(value), "a value");
