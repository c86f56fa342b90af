// Encrypted bundles (docs/reference/format.md, encryption): opened with a key ring and the master key, by WebCrypto.
//
// Opening turns the lines of a bundle into those of a plain one; they are then checked like any other. Without the keys
// headers, chain, order and summaries are checked, and the content is not. What a fingerprint hides is not needed for
// any check, so it stays hidden.

import { fromBase64, fromHex, joined, toHex } from "./hashes.ts";
import { BrokenBundleError, canonicalText, get, has, isInt, isObject, isText, parse, parseObject } from "./json.ts";
import type { Json, JsonObject } from "./json.ts";

/** What opens an encrypted bundle. */
export interface BundleKeys {
  /** The text of the key ring, a file of the store's owner. */
  ring: string;
  /** The master key as text: 32 bytes in base64 or hex. */
  master: string;
  /** Decompresses one zstd frame. Needed where there is no Node 22.15 or newer. */
  unzstd?: (frame: Uint8Array) => Uint8Array;
}

const TEXT = "wle1:";
const MAGIC = "WLE1";
const [NONCE, ID, DIGEST] = [12, 8, 32];
const START = MAGIC.length + ID;
const HIDDEN = "0".repeat(64);

type Platform = { process?: { getBuiltinModule?(name: string): unknown } };
type NodeZlib = { zstdDecompressSync?(data: Uint8Array): Uint8Array };

export const isEnvelope = (text: string): boolean => text.startsWith(TEXT);

/** The id of the key ring that an encrypted bundle names; undefined for a plain one. */
export function ringOf(first: Uint8Array): string | undefined {
  const ring = get(parseObject(first, "the first line"), "encryption");
  if (ring === undefined || ring === "") return undefined;
  if (!isText(ring)) throw new BrokenBundleError("the first line does not name its key ring");
  return ring;
}

/** Whether a plain body may stand in an encrypted bundle: a fork that was made without the key, and says nothing else. */
export function isPlainFork(header: JsonObject, body: JsonObject, records: number): boolean {
  const [turn, attempt] = [get(header, "turn", 0), get(header, "attempt", 1)];
  const delta: Json[] = [
    { op: "add", path: "/status", value: "open" },
    { op: "add", path: "/lease", value: { epoch: 0, holder: "" } },
  ];
  if (turn !== 0) {
    delta.push({ op: "add", path: "/turn", value: { number: turn, attempt, status: "interrupted" } });
  }
  const isForked = get(header, "kind") === "session.forked" && records === 1;
  const isBare = Object.keys(body).every((name) => ["parent", "at", "hash", "name", "delta"].includes(name));
  return isForked && isBare && canonicalText(get(body, "delta", [])) === canonicalText(delta);
}

/** The commit lines of an encrypted bundle, as they are when decrypted. */
export async function openLines(lines: Uint8Array[], session: string, ring: string, keys: BundleKeys): Promise<Uint8Array[]> {
  const key = await treeKey(session.split(".")[0] as string, ring, keys);
  const opened: Uint8Array[] = [];
  for (const [offset, line] of lines.entries()) {
    const commit = parseObject(line, `line ${offset + 2}`);
    await openCommit(commit, key);
    opened.push(new TextEncoder().encode(JSON.stringify(commit)));
  }
  return opened;
}

async function openCommit(commit: JsonObject, key: TreeKey): Promise<void> {
  const [session, first, last] = [get(commit, "session"), get(commit, "first"), get(commit, "last")];
  if (!isText(session) || !isInt(first) || !isInt(last)) return; // which is refused later, with its place
  const records = get(commit, "records");
  for (const [offset, record] of (Array.isArray(records) ? records : []).entries()) {
    if (!Array.isArray(record) || !isText(record[2]) || !isEnvelope(record[2])) continue;
    const value = await key.open(record[2], "event", session, String(first + offset), first + offset);
    const start = 1 + (value[0] as number);
    record[1] = toHex(value.subarray(1, start));
    record[2] = text(value.subarray(start), first + offset);
  }
  const payloads: JsonObject = {};
  for (const [name, content] of Object.entries(objectIn(commit, "payloads"))) {
    const value = await key.open(`${TEXT}${String(content)}`, "payload", session, fromHex(name), first);
    const digest = value.subarray(0, DIGEST);
    if (toHex(await hmac(key.names, digest)) !== name) throw new BrokenBundleError("a payload has another name", first);
    payloads[toHex(digest)] = toBase64(value.subarray(DIGEST));
  }
  if (has(commit, "payloads")) commit["payloads"] = payloads;
  const paths = get(commit, "paths");
  if (Array.isArray(paths) && isText(paths[0])) {
    commit["paths"] = parse(await key.open(paths[0], "paths", session, String(last), first), "the paths", first);
  }
  if (get(commit, "fingerprint", "") !== "") commit["fingerprint"] = HIDDEN;
}

class TreeKey {
  readonly #id: Uint8Array;
  readonly #content: CryptoKey;
  readonly names: Uint8Array;
  readonly #unzstd: BundleKeys["unzstd"];

  constructor(id: Uint8Array, content: CryptoKey, names: Uint8Array, unzstd: BundleKeys["unzstd"]) {
    this.#id = id;
    this.#content = content;
    this.names = names;
    this.#unzstd = unzstd;
  }

  /** The value of an envelope that stands in this place. */
  async open(envelope: string, what: string, session: string, place: string | Uint8Array, seq: number): Promise<Uint8Array> {
    const bytes = isEnvelope(envelope) ? fromBase64(envelope.slice(TEXT.length)) : undefined;
    if (bytes === undefined || text(bytes.subarray(0, MAGIC.length), seq) !== MAGIC) {
      throw new BrokenBundleError(`the ${what} is not encrypted, or was cut`, seq);
    }
    if (toHex(bytes.subarray(MAGIC.length, START)) !== toHex(this.#id)) {
      throw new BrokenBundleError(`the ${what} is encrypted with a key that its tree never had`, seq);
    }
    const where = isText(place) ? ascii(place) : place;
    const zero = new Uint8Array(1);
    const bound = joined(ascii(MAGIC), this.#id, zero, ascii(what), zero, ascii(session), zero, where);
    const packed = await decrypted(this.#content, bytes.subarray(START), bound);
    if (packed === undefined) {
      throw new BrokenBundleError(`the encrypted ${what} was altered, or was put there from elsewhere`, seq);
    }
    return packed[0] === 1 ? this.#unpacked(packed.subarray(1), seq) : packed.subarray(1);
  }

  #unpacked(frame: Uint8Array, seq: number): Uint8Array {
    const zlib = (globalThis as Platform).process?.getBuiltinModule?.("node:zlib") as NodeZlib | undefined;
    const unzstd = this.#unzstd ?? zlib?.zstdDecompressSync;
    if (unzstd === undefined) throw new TypeError("opening this bundle needs `unzstd`: this platform has no zstd");
    try {
      return new Uint8Array(unzstd(frame));
    } catch {
      throw new BrokenBundleError("an encrypted value cannot be unpacked", seq);
    }
  }
}

/** The key of a tree, taken out of the ring. Errors never hold a key. */
async function treeKey(tree: string, ring: string, { ring: file, master, unzstd }: BundleKeys): Promise<TreeKey> {
  const secret = secretOf(master.trim());
  if (secret === undefined) throw new BrokenBundleError("the master key is not 32 bytes in base64 or hex");
  const wrap = await imported(await expanded(secret, "wakelog master key 1 wrap"));
  // A line without an end was cut off by a crash.
  const [top, ...lines] = file.slice(0, file.lastIndexOf("\n") + 1).trimEnd().split("\n").map((line) => parseObject(line, "the key ring"));
  if (top === undefined || get(top, "wakelog_keys") !== 1) throw new BrokenBundleError("this is not a key ring");
  if (get(top, "ring") !== ring) throw new BrokenBundleError(`the bundle needs the key ring ${ring}`);
  if ((await unwrapped(wrap, get(top, "check"), `ring ${ring}`)) === undefined) {
    throw new BrokenBundleError(`this is not the master key of the key ring ${ring}`);
  }
  const line = lines.findLast((each) => get(each, "tree") === tree);
  if (line === undefined) throw new BrokenBundleError(`the key ring has no key of ${tree}`);
  if (has(line, "deleted")) throw new BrokenBundleError(`the key of ${tree} was deleted: its content is erased`);
  const id = String(get(line, "id"));
  const key = await unwrapped(wrap, get(line, "wrapped"), `${ring} ${tree} ${id}`);
  if (key === undefined) throw new BrokenBundleError(`the key of ${tree} in the key ring was altered`);
  const content = await imported(await expanded(key, "wakelog tree key 1 content"));
  return new TreeKey(fromHex(id.slice(2)), content, await expanded(key, "wakelog tree key 1 name"), unzstd);
}

const unwrapped = (key: CryptoKey, wrapped: Json | undefined, bound: string): Promise<Uint8Array | undefined> =>
  decrypted(key, (isText(wrapped) && fromBase64(wrapped)) || new Uint8Array(), ascii(bound));

function secretOf(given: string): Uint8Array | undefined {
  const bytes = /^[0-9a-fA-F]{64}$/.test(given) ? fromHex(given) : fromBase64(given);
  return bytes?.length === 32 ? bytes : undefined;
}

/** A nonce, and what AES-256-GCM made with it; undefined when it was altered or is bound to something else. */
async function decrypted(key: CryptoKey, data: Uint8Array, bound: Uint8Array): Promise<Uint8Array | undefined> {
  const given = { name: "AES-GCM", iv: copied(data.subarray(0, NONCE)), additionalData: copied(bound) };
  try {
    return new Uint8Array(await crypto.subtle.decrypt(given, key, copied(data.subarray(NONCE))));
  } catch {
    return undefined;
  }
}

/** HKDF-Expand with SHA-256, for 32 bytes: one round. */
const expanded = (secret: Uint8Array, info: string): Promise<Uint8Array> =>
  hmac(secret, joined(ascii(info), new Uint8Array([1])));

async function hmac(secret: Uint8Array, data: Uint8Array): Promise<Uint8Array> {
  const key = await crypto.subtle.importKey("raw", copied(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, copied(data)));
}

const imported = (secret: Uint8Array): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", copied(secret), "AES-GCM", false, ["decrypt"]);

const ascii = (given: string): Uint8Array => new TextEncoder().encode(given);
const copied = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);
const objectIn = (line: JsonObject, name: string): JsonObject => {
  const found = get(line, name, {});
  return isObject(found) ? found : {};
};

function toBase64(bytes: Uint8Array): string {
  let letters = "";
  for (let at = 0; at < bytes.length; at += 0x8000) letters += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(letters);
}

function text(bytes: Uint8Array, seq: number): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new BrokenBundleError("a decrypted body is not UTF-8", seq);
  }
}
