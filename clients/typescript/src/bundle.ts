// Reads an exported bundle, checks all that can be checked in it, and folds its state.
//
// Written from docs/reference/format.md, without a look at the Python code: a second implementation is what makes it a
// format. The project's own tests hold both against each other (tests/readers).

import type { BundleKeys } from "./encryption.ts";
import { openLines, ringOf } from "./encryption.ts";
import type { Hashes } from "./hashes.ts";
import { nodeHashes, toHex } from "./hashes.ts";
import type { Erasure } from "./history.ts";
import { checkReplaced, findErasures, findPrune, hashAt, isMention, payloadOf, placeCommits, recordAt } from "./history.ts";
import { BrokenBundleError, clone, get, isHash, isInt, isObject, isText, parse } from "./json.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Segment, StoredCommit, StoredRecord } from "./segments.ts";
import { ZERO, readCommit, readSegments, splitLines } from "./segments.ts";
import { applied, stateHash } from "./state.ts";

export interface BundleOptions {
  /** The state at this event; by default at the last one. The whole bundle is checked all the same. */
  at?: number;
  /** A head that was kept elsewhere, which the bundle must contain. */
  anchor?: Json;
  /** Needed where there is no Node. */
  hashes?: Hashes;
  /** For an encrypted bundle. Without them its headers, chain and order are checked, and not its content. */
  keys?: BundleKeys;
}

export interface BundleReport {
  session: string;
  /** The event that `state` is the state at. */
  events: number;
  head_hash: string;
  state_hash: string;
  state: JsonObject;
  /** How many bodies were erased and pruned, and how many payloads went with them: these cannot be checked. */
  erased: number;
  pruned: number;
  payloads_gone: number;
  /** How many bodies are encrypted, where no keys were given: then `state` is empty, and not known. */
  encrypted?: number;
}

/** Checks a bundle, plain or gzipped. Throws a BrokenBundleError that says what does not hold, and where. */
export async function readBundle(data: Uint8Array, options: BundleOptions = {}): Promise<BundleReport> {
  const hashes = options.hashes ?? nodeHashes();
  if (hashes === undefined) throw new TypeError("readBundle needs `hashes` here: this platform has no SHAKE-256");
  const [first, rest] = splitLines(await unzipped(data), hashes);
  const segments = readSegments(first);
  const ring = ringOf(first);
  const lines = ring && options.keys ? await openLines(rest, (segments[0] as Segment).session, ring, options.keys) : rest;
  const isSealed = ring !== undefined && options.keys === undefined;
  if (ring === undefined && options.keys !== undefined) throw new BrokenBundleError("the bundle is not encrypted");
  const commits = lines.map((line, offset) => readCommit(line, offset + 2, segments, hashes, isSealed));
  const history = placeCommits(segments, commits);
  if (isSealed) return readSealed(segments, commits, history, options);
  const erasures = findErasures(segments);
  const erased = checkReplaced(history, erasures);
  for (const commit of commits) checkSummary(commit);
  const head = history.length;
  const at = options.at ?? head;
  const state = fold(segments, erasures, at, hashes);
  const payloadsGone = countGone(segments, history);
  if (options.anchor !== undefined) checkAnchor(segments, options.anchor);
  if (at > head) throw new BrokenBundleError(`there is no event ${at}: the session has ${head}`, at);
  return {
    session: (segments.at(-1) as Segment).session,
    events: at,
    head_hash: history[at - 1]?.hash ?? toHex(ZERO),
    state_hash: stateHash(state, hashes),
    state,
    erased,
    pruned: history.filter((record) => record.form === "pruned").length,
    payloads_gone: payloadsGone,
  };
}

/** What can be told of an encrypted bundle without its keys. */
function readSealed(
  segments: Segment[],
  commits: StoredCommit[],
  history: StoredRecord[],
  { at = history.length, anchor }: BundleOptions,
): BundleReport {
  for (const commit of commits) checkHeaders(commit);
  if (anchor !== undefined) checkAnchor(segments, anchor);
  if (at > history.length) {
    throw new BrokenBundleError(`there is no event ${at}: the session has ${history.length}`, at);
  }
  const count = (form: StoredRecord["form"]): number => history.filter((record) => record.form === form).length;
  return {
    session: (segments.at(-1) as Segment).session,
    events: at,
    head_hash: history[at - 1]?.hash ?? toHex(ZERO),
    state_hash: "",
    state: {},
    erased: 0,
    pruned: count("pruned"),
    payloads_gone: 0,
    encrypted: count("encrypted"),
  };
}

async function unzipped(data: Uint8Array): Promise<Uint8Array> {
  if (data[0] !== 0x1f || data[1] !== 0x8b) return data;
  try {
    const plain = new Blob([new Uint8Array(data)]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(plain).arrayBuffer());
  } catch (error) {
    throw new BrokenBundleError(`the bundle cannot be unzipped: ${(error as Error).message}`);
  }
}

const isSame = (told: Json | undefined, computed: Json): boolean => JSON.stringify(told) === JSON.stringify(computed);

/** Compares what a commit says of its records with their headers. */
function checkHeaders({ line, records, first }: StoredCommit): void {
  if (records.some((record) => record.at !== line["at"])) {
    throw new BrokenBundleError("the commit's time is not that of its events", first);
  }
  if (!isSame(get(line, "kinds"), [...new Set(records.map((record) => record.kind))])) {
    throw new BrokenBundleError("the commit lists other kinds than its events have", first);
  }
  const turns = records.map((record) => record.turn).filter((turn) => turn !== 0);
  const range = turns.length > 0 ? [Math.min(...turns), Math.max(...turns)] : [0, 0];
  if (!isSame(get(line, "turns"), range)) {
    throw new BrokenBundleError("the commit lists other turns than its events have", first);
  }
}

/** The same with their bodies. */
function checkSummary(commit: StoredCommit): void {
  checkHeaders(commit);
  const { line, records, first, hash } = commit;
  const paths = get(line, "paths", []);
  const fingerprint = get(line, "fingerprint", "");
  if (records.some((record) => record.form !== "intact")) {
    if (!isSame(paths, []) || fingerprint !== "") {
      throw new BrokenBundleError("the commit still has paths or a fingerprint of what was erased or pruned", first);
    }
    return;
  }
  const bodies = records.map((record) => record.body);
  if (bodies.every((body) => body !== null)) {
    const changed = records.filter((record) => record.kind === "file.changed");
    const named = changed.map((record) => get(record.body as JsonObject, "path")).filter(isText);
    if (!isSame(paths, [...new Set(named)])) {
      throw new BrokenBundleError("the commit lists other paths than its events have", first);
    }
  }
  if (fingerprint === "" && line["commit_id"] !== hash.slice(0, 16)) {
    throw new BrokenBundleError("the commit's id is neither a caller's nor from its hash", first);
  }
  if (fingerprint !== "" && !isHash(fingerprint)) {
    throw new BrokenBundleError("the commit's fingerprint is not a hash", first);
  }
}

function checkAfter({ line, last }: StoredCommit, state: JsonObject): void {
  const { lease, turn, status } = state;
  const isRight =
    isObject(lease) &&
    isObject(turn) &&
    lease["epoch"] === line["epoch"] &&
    status === line["status"] &&
    turn["number"] === line["turn"];
  if (!isRight) {
    throw new BrokenBundleError("the commit's epoch, status or turn is not that of the state after it", last);
  }
}

function step(state: JsonObject, { seq, kind, body }: StoredRecord): JsonObject {
  if (body === null) throw new BrokenBundleError(`the body of event ${seq} is encrypted; it cannot be read`, seq);
  return applied(state, get(body, "delta", []), kind, seq);
}

function checkCheckpoint({ seq, kind, body }: StoredRecord, state: JsonObject, erasures: Erasure[], hashes: Hashes): void {
  const wanted = body === null ? "" : get(body, "state_hash", "");
  if (kind !== "checkpoint.named" || wanted === "") return;
  for (const [event, bodies] of erasures) {
    const isLater = event.seq > seq || event.seq > event.segment.end;
    if (isLater && [...bodies.keys()].some((erased) => erased.seq <= seq)) return;
  }
  if (stateHash(state, hashes) !== wanted) {
    throw new BrokenBundleError("the state is not the one whose hash the checkpoint recorded", seq);
  }
}

/** The state at `at`, having folded all there is. */
function fold(segments: Segment[], erasures: Erasure[], at: number, hashes: Hashes): JsonObject {
  const origin = ({ number, first }: Segment): StoredRecord => recordAt(segments, number, first - 1) as StoredRecord;
  const branches = new Map<StoredRecord, JsonObject>(segments.slice(1).map((segment) => [origin(segment), {}]));
  let wanted: JsonObject = {};
  let lost = 0;
  for (const segment of segments) {
    let state = segment.fork ? clone(branches.get(origin(segment)) as JsonObject) : {};
    for (let seq = segment.first; seq <= segment.end; seq += 1) {
      let record = segment.records.get(seq) as StoredRecord;
      if (record.form === "pruned") {
        const [witness, upto] = findPrune(segments, segment, seq);
        state = readBase(segments, witness);
        if (seq <= at && at < upto) lost = upto;
        seq = upto;
        record = segment.records.get(upto) as StoredRecord;
      } else {
        checkCheckpoint(record, state, erasures, hashes);
        state = step(state, record);
      }
      if (record.commit.last === seq) checkAfter(record.commit, state);
      if (branches.has(record)) branches.set(record, clone(state));
      if (seq === at) wanted = clone(state);
    }
    foldBeyond(segment, state, branches);
  }
  if (lost) {
    throw new BrokenBundleError(`the state at ${at} is no longer known: the session was pruned up to ${lost}`, at);
  }
  return wanted;
}

/**
 * Events that are not of the history: nothing is asked of them but that their commits' summaries are right. Nothing may
 * vouch for a body that was replaced there; from such a one on, the state is not known.
 */
function foldBeyond(segment: Segment, atEnd: JsonObject, branches: Map<StoredRecord, JsonObject>): void {
  const { first, last, end, records } = segment;
  if (last <= end) return;
  let state = clone(atEnd);
  for (let seq = Math.max(first, end + 1); seq <= last; seq += 1) {
    const record = records.get(seq) as StoredRecord;
    if (record.form !== "intact" || record.body === null) return;
    state = step(state, record);
    if (record.commit.last === seq) checkAfter(record.commit, state);
    if (branches.has(record)) branches.set(record, clone(state));
  }
}

function readBase(segments: Segment[], record: StoredRecord): JsonObject {
  let base = get(record.body as JsonObject, "base");
  if (isMention(base)) {
    const content = payloadOf(segments, record, base);
    if (content === undefined) throw new BrokenBundleError("the base of range.pruned is missing", record.seq);
    base = parse(content, "the base of range.pruned", record.seq);
  }
  if (!isObject(base)) throw new BrokenBundleError("the base of range.pruned is not a state", record.seq);
  return clone(base);
}

function checkAnchor(segments: Segment[], anchor: Json): void {
  const [session, seq, hash] = isObject(anchor) ? ["session", "seq", "hash"].map((name) => get(anchor, name)) : [];
  if (!isText(session) || !isInt(seq) || !isHash(hash) || seq < 0) {
    throw new BrokenBundleError("the anchor is not a session, a seq and a hash");
  }
  const number = segments.findIndex((segment) => segment.session === session);
  if (number < 0) throw new BrokenBundleError(`the anchor is for ${session}, which is not in the bundle`, seq);
  const known = hashAt(segments, number, seq);
  if (known === undefined) {
    const sentence = `the anchor knows event ${seq}, which is not in the bundle: newer events were left out`;
    throw new BrokenBundleError(sentence, seq);
  }
  if (known !== hash) throw new BrokenBundleError("the anchor has another hash for this event", seq);
}

/** Counts mentions whose payload was erased or pruned. What is there must have the size they say. */
function countGone(segments: Segment[], history: StoredRecord[]): number {
  let gone = 0;
  for (const record of history) {
    if (record.form !== "intact" || record.body === null) continue;
    for (const mention of Object.values(record.body).filter(isMention)) {
      const content = payloadOf(segments, record, mention);
      if (content === undefined) gone += 1;
      else if (get(mention, "size", 0) !== content.length) {
        throw new BrokenBundleError("a payload does not have the size that its mention says", record.seq);
      }
    }
  }
  return gone;
}
