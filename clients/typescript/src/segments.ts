// The lines of a bundle: segments, commits and records, each checked by itself (docs/reference/format.md, bundles).

import { isEnvelope, isPlainFork } from "./encryption.ts";
import type { Hashes } from "./hashes.ts";
import { fromBase64, fromHex, joined, toHex } from "./hashes.ts";
import { BrokenBundleError, get, has, isHash, isInt, isObject, isText, parseObject, utf8 } from "./json.ts";
import type { Json, JsonObject } from "./json.ts";

const VERSION = 1;
export const ZERO = new Uint8Array(32);

export interface StoredRecord {
  seq: number;
  kind: string;
  at: number;
  turn: number;
  form: "intact" | "replaced" | "pruned" | "encrypted";
  /** Null: there is none, or it is encrypted. */
  body: JsonObject | null;
  /** The chain's hash after it, in hex. */
  hash: string;
  commit: StoredCommit;
  segment: Segment;
}

export interface StoredCommit {
  line: JsonObject;
  session: string;
  first: number;
  last: number;
  prev: string;
  hash: string;
  records: StoredRecord[];
  payloads: Map<string, Uint8Array>;
}

export interface Fork {
  parent: string;
  at: number;
  hash: string;
}

/**
 * A session in a bundle. `first` to `last` are its own events there; those up to `end` are of the history. A parent that
 * a fork leaves before its own first event has an `end` before its `first`: none are.
 */
export interface Segment {
  session: string;
  fork: Fork | null;
  number: number;
  first: number;
  last: number;
  end: number;
  records: Map<number, StoredRecord>;
  commits: StoredCommit[];
}

/** The first line and those between it and the last one, which is checked here. */
export function splitLines(data: Uint8Array, hashes: Hashes): [Uint8Array, Uint8Array[]] {
  if (data.at(-1) !== 0x0a) throw new BrokenBundleError("the bundle was cut: its last line has no end");
  const lines: Uint8Array[] = [];
  for (let start = 0; start < data.length; ) {
    const stop = data.indexOf(0x0a, start);
    lines.push(data.subarray(start, stop));
    start = stop + 1;
  }
  const last = lines.pop() as Uint8Array;
  const end = parseObject(last, "the last line");
  if (!has(end, "end") || !has(end, "sha256")) throw new BrokenBundleError("the bundle was cut: it has no end line");
  if (end["end"] !== lines.length) {
    throw new BrokenBundleError(`the end line counts ${String(end["end"])} lines before it, there are ${lines.length}`);
  }
  if (end["sha256"] !== toHex(hashes.sha256(data.subarray(0, data.length - last.length - 1)))) {
    throw new BrokenBundleError("the bundle was changed: the end line has another sha256");
  }
  const [first, ...rest] = lines;
  if (first === undefined) throw new BrokenBundleError("the bundle has no first line");
  return [first, rest];
}

export function readSegments(line: Uint8Array): Segment[] {
  const head = parseObject(line, "the first line");
  const version = get(head, "wakelog");
  if (!isInt(version) || version < 1) {
    throw new BrokenBundleError("this is not a bundle: the first line has no version");
  }
  if (version > VERSION) {
    throw new BrokenBundleError(`the bundle is of format version ${version}; a reader of that version is needed`);
  }
  const listed = get(head, "segments");
  if (!Array.isArray(listed) || listed.length === 0) throw new BrokenBundleError("the first line lists no segments");
  const segments: Segment[] = [];
  for (const entry of listed) segments.push(readSegment(entry, segments));
  for (const segment of segments.slice(0, -1)) {
    segment.end = Math.min(...segments.slice(segment.number + 1).map((later) => (later.fork as Fork).at));
  }
  const names = segments.map((segment) => segment.session);
  segments.slice(1).forEach((segment, place) => {
    const { parent } = segment.fork as Fork;
    if (names.includes(parent) && parent !== names[place]) {
      throw new BrokenBundleError(`${segment.session} does not follow its parent`);
    }
  });
  if (get(head, "session") !== names.at(-1)) {
    throw new BrokenBundleError("the last segment is not the bundle's session");
  }
  return segments;
}

function readSegment(entry: Json, before: Segment[]): Segment {
  const session = isObject(entry) ? get(entry, "session") : undefined;
  if (!isObject(entry) || !isText(session)) throw new BrokenBundleError("a segment has no session");
  if (!isText(get(entry, "name", ""))) throw new BrokenBundleError("a segment's name is not a string");
  const root = before[0]?.session ?? session;
  const fork = get(entry, "fork");
  let leaves: Fork | null = null;
  if (before.length === 0) {
    if (fork !== undefined) throw new BrokenBundleError("the first segment is a fork: its parent is missing");
  } else {
    if (!isFork(fork)) throw new BrokenBundleError(`${session} does not say where it leaves its parent`);
    if (fork.at < 1) throw new BrokenBundleError(`${session} leaves its parent before the first event`);
    leaves = fork;
  }
  if (before.some((other) => other.session === session)) throw new BrokenBundleError(`${session} is listed twice`);
  if (session.split(".")[0] !== root) throw new BrokenBundleError(`${session} is not of the tree of ${root}`);
  const first = leaves === null ? 1 : leaves.at + 1;
  return { session, fork: leaves, number: before.length, first, last: 0, end: 0, records: new Map(), commits: [] };
}

function isFork(value: Json | undefined): value is JsonObject & Fork {
  return isObject(value) && isText(get(value, "parent")) && isInt(get(value, "at")) && isHash(get(value, "hash"));
}

export function readCommit(
  text: Uint8Array,
  number: number,
  segments: Segment[],
  hashes: Hashes,
  isEncrypted = false,
): StoredCommit {
  const line = parseObject(text, `line ${number}`);
  const what = `the commit in line ${number}`;
  const field = <T extends Json>(name: string, fits: (value: unknown) => value is T): T => {
    const value = get(line, name);
    if (!fits(value)) throw new BrokenBundleError(`${what} has no ${name}`);
    return value;
  };
  const session = field("session", isText);
  const [first, last] = [field("first", isInt), field("last", isInt)];
  const [prev, hash] = [field("prev", isHash), field("hash", isHash)];
  for (const name of ["commit_id", "status"]) field(name, isText);
  for (const name of ["at", "epoch", "turn"]) field(name, isInt);
  const listed = get(line, "records");
  if (first < 1 || last < first || !Array.isArray(listed)) throw new BrokenBundleError(`${what} holds no events`);
  if (listed.length !== last - first + 1) {
    throw new BrokenBundleError(`${what} does not hold the events ${first} to ${last}`, first);
  }
  const segment = segments.find((each) => each.session === session);
  if (segment === undefined) {
    throw new BrokenBundleError(`line ${number} is a commit of ${session}, out of place`, first);
  }
  const commit: StoredCommit = { line, session, first, last, prev, hash, records: [], payloads: new Map() };
  let before = prev;
  listed.forEach((parts, offset) => {
    const record = readRecord(parts, first + offset, before, commit, segment, hashes, isEncrypted);
    before = record.hash;
    commit.records.push(record);
  });
  if (before !== hash) {
    throw new BrokenBundleError("the chain is broken: the commit's hash is not that of its headers", last);
  }
  if (!isEncrypted) readPayloads(commit, what, hashes);
  return commit;
}

function readRecord(
  parts: Json,
  place: number,
  before: string,
  commit: StoredCommit,
  segment: Segment,
  hashes: Hashes,
  isEncrypted: boolean,
): StoredRecord {
  if (!Array.isArray(parts) || parts.length !== 3 || !parts.every(isText)) {
    throw new BrokenBundleError("a record is not [header, salt, body]", place);
  }
  const [headerText, saltText, bodyText] = parts as [string, string, string];
  const headerBytes = utf8(headerText, "the header", place);
  const bodyBytes = utf8(bodyText, "the body", place);
  const header = parseObject(headerText, "the header", place);
  const seq = get(header, "seq");
  if (seq !== place) {
    throw new BrokenBundleError(`the header says ${String(seq)} where event ${place} should be`, place);
  }
  const version = get(header, "v", 1);
  if (!isInt(version) || version < 1) throw new BrokenBundleError("the header's version is not a number", place);
  if (version > VERSION) {
    const needed = `event ${place} is of format version ${version}; a reader of that version is needed`;
    throw new BrokenBundleError(needed, place);
  }
  const kind = get(header, "kind");
  const at = get(header, "at");
  const bodyHash = get(header, "body_hash");
  if (!isText(kind) || !isInt(at) || !isHash(bodyHash)) {
    throw new BrokenBundleError("the header lacks its kind, its time or its body_hash", place);
  }
  const turn = get(header, "turn", 0);
  if (!isInt(turn)) throw new BrokenBundleError("the header's turn is not a number", place);
  if (!/^([0-9a-f]{32})?$/.test(saltText)) throw new BrokenBundleError("the salt is not 16 bytes in hex", place);
  const isSalted = saltText !== "";
  if (isSalted && bodyText === "") throw new BrokenBundleError("a record has a salt and no body", place);
  if (isSalted && toHex(hashes.sha256(joined(fromHex(saltText), bodyBytes))) !== bodyHash) {
    throw new BrokenBundleError("the body does not have the hash that its header names", place);
  }
  const isSealed = isEncrypted && isEnvelope(bodyText);
  const form = isSealed ? "encrypted" : isSalted ? "intact" : bodyText !== "" ? "replaced" : "pruned";
  const isReadable = bodyText !== "" && !isSealed && !get(header, "codec") && !get(header, "key_id");
  const body = isReadable ? parseObject(bodyText, "the body", place) : null;
  if (isEncrypted && body !== null && !(isSalted && isPlainFork(header, body, commit.last - commit.first + 1))) {
    throw new BrokenBundleError("the body is not encrypted, as everything in this bundle should be", place);
  }
  const hash = toHex(hashes.sha256(joined(fromHex(before), headerBytes)));
  return { seq, kind, at, turn, form, body, hash, commit, segment };
}

function readPayloads({ line, first, payloads }: StoredCommit, what: string, hashes: Hashes): void {
  const listed = get(line, "payloads", {});
  if (!isObject(listed)) throw new BrokenBundleError(`the payloads of ${what} are not an object`, first);
  for (const [name, text] of Object.entries(listed)) {
    const content = isText(text) ? fromBase64(text) : undefined;
    if (content === undefined) throw new BrokenBundleError(`payload ${name} is not base64`, first);
    if (toHex(hashes.sha256(content)) !== name) {
      throw new BrokenBundleError(`the content of payload ${name} has another hash`, first);
    }
    payloads.set(name, content);
  }
}
