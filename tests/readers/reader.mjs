// Reads an exported bundle, checks what can be checked in it, and folds its state.
//
// Written from docs/reference/format.md, without a look at the code of the library. Node 20, no packages.
//
//     node reader.mjs BUNDLE [--at SEQ] [--anchor '{"session": id, "seq": n, "hash": hex}']
//
// Prints one JSON document. Whatever --at says, the whole bundle is checked first. Instead of arguments, `-` takes many
// command lines from standard input, each a JSON list in a line, and prints one document a line.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

const VERSION = 1;
const ZERO = Buffer.alloc(32);
const HEX64 = /^[0-9a-f]{64}$/;
const INDEX = /^(0|[1-9][0-9]{0,14})$/;

/** Something does not hold. `seq` is the event it was found at; 0: at none in particular. */
class Broken extends Error {
  constructor(sentence, seq = 0) {
    super(sentence);
    this.seq = seq;
  }
}

// ---------------------------------------------------------------- JSON

// Members are read with `get` and written with `set`: a member may be called __proto__ or constructor.
const has = (object, name) => Object.hasOwn(object, name);
const get = (object, name, otherwise) => (has(object, name) ? object[name] : otherwise);
const set = (object, name, value) =>
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isInt = (value) => Number.isSafeInteger(value);
const isText = (value) => typeof value === "string";
const isHash = (value) => isText(value) && HEX64.test(value);
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const clone = (value) => JSON.parse(JSON.stringify(value));

function decode(bytes, what, seq = 0) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Broken(`${what} is not UTF-8`, seq);
  }
}

function parse(text, what, seq = 0) {
  if (!isText(text)) text = decode(text, what, seq);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Broken(`${what} is not JSON: ${error.message}`, seq);
  }
}

function parseObject(text, what, seq = 0) {
  const value = parse(text, what, seq);
  if (!isObject(value)) throw new Broken(`${what} is not a JSON object`, seq);
  return value;
}

function utf8(text, what, seq = 0) {
  if (!text.isWellFormed()) throw new Broken(`${what} holds a lone surrogate`, seq);
  return Buffer.from(text, "utf8");
}

// ---------------------------------------------------------------- RFC 8785

function canonicalText(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (isObject(value)) {
    const members = Object.keys(value).sort(); // by UTF-16 code units, as RFC 8785 asks
    return `{${members.map((name) => `${JSON.stringify(name)}:${canonicalText(value[name])}`).join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new Broken("a number is not finite");
  if (isText(value) && !value.isWellFormed()) throw new Broken("a value holds a lone surrogate");
  return JSON.stringify(value); // -0 becomes 0
}

const canonical = (value) => utf8(canonicalText(value), "a value");

// ---------------------------------------------------------------- state_hash

const [WHOLE, OPEN, OPEN_TWICE, OPEN_ALL] = [0, 1, 2, Infinity];
const RULES = new Map([
  ["status", WHOLE],
  ["turn", WHOLE],
  ["lease", WHOLE],
  ["goal", WHOLE],
  ["last_error", WHOLE],
  ["working_set", OPEN_TWICE],
  ["data", OPEN_ALL],
]);
const NO_LEAVES = new Set(["view"]);

const escape = (name) => name.replaceAll("~", "~0").replaceAll("/", "~1");

function* leaves(pointer, value, levels) {
  if (levels > 0 && isObject(value)) {
    yield [pointer, {}];
    for (const name of Object.keys(value)) yield* leaves(`${pointer}/${escape(name)}`, value[name], levels - 1);
  } else {
    yield [pointer, value];
  }
}

function* stateLeaves(document) {
  yield ["", {}];
  for (const name of Object.keys(document)) {
    if (!NO_LEAVES.has(name)) yield* leaves(`/${escape(name)}`, document[name], RULES.get(name) ?? OPEN);
  }
}

function stateHash(document) {
  let total = 0n;
  for (const leaf of stateLeaves(document)) {
    const bytes = createHash("shake256", { outputLength: 512 }).update(canonical(leaf)).digest();
    total += BigInt(`0x${bytes.reverse().toString("hex")}`);
  }
  const hex = BigInt.asUintN(4096, total).toString(16).padStart(1024, "0");
  return sha256(Buffer.from(hex, "hex").reverse()).toString("hex");
}

// ---------------------------------------------------------------- JSON Patch

function tokens(path, seq) {
  if (!isText(path)) throw new Broken("an operation's path is not a string", seq);
  if (path === "") return [];
  if (!path.startsWith("/") || /~(?![01])/.test(path)) throw new Broken(`"${path}" is not a JSON Pointer`, seq);
  return path
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function index(token, below, path, seq) {
  if (!INDEX.test(token) || Number(token) >= below) {
    throw new Broken(`the delta does not fit: "${path}" is no place in the list`, seq);
  }
  return Number(token);
}

function apply(state, delta, kind, seq) {
  if (!Array.isArray(delta)) throw new Broken("the delta is not a list", seq);
  for (const operation of delta) {
    if (!isObject(operation)) throw new Broken("the delta holds something that is not an operation", seq);
    state = applyOne(state, operation, kind, seq);
  }
  return state;
}

function applyOne(state, operation, kind, seq) {
  const op = get(operation, "op");
  const path = get(operation, "path");
  if (!["add", "remove", "replace"].includes(op)) throw new Broken(`the delta holds an operation "${op}"`, seq);
  if (op !== "remove" && !has(operation, "value")) throw new Broken(`the operation at "${path}" has no value`, seq);
  const value = op === "remove" ? null : clone(operation.value);
  const way = tokens(path, seq);
  if (way.length === 0) {
    if (op !== "replace" || kind !== "session.opened" || !isObject(value)) {
      throw new Broken(`${kind} must not ${op} the whole document`, seq);
    }
    return value;
  }
  const misfit = () => new Broken(`the delta does not fit: nothing is at "${path}"`, seq);
  let place = state;
  for (const token of way.slice(0, -1)) {
    if (Array.isArray(place)) place = place[index(token, place.length, path, seq)];
    else if (isObject(place) && has(place, token)) place = place[token];
    else throw misfit();
  }
  const last = way.at(-1);
  if (Array.isArray(place)) {
    const at = index(last, place.length + (op === "add" ? 1 : 0), path, seq);
    if (op === "add") place.splice(at, 0, value);
    else if (op === "remove") place.splice(at, 1);
    else place[at] = value;
  } else if (isObject(place)) {
    if (op !== "add" && !has(place, last)) throw misfit();
    if (op === "remove") delete place[last];
    else set(place, last, value);
  } else {
    throw misfit();
  }
  return state;
}

// ---------------------------------------------------------------- the bundle's parts

function readFile(path) {
  let data;
  try {
    data = readFileSync(path);
  } catch (error) {
    throw new Broken(`the bundle cannot be read: ${error.message}`);
  }
  if (data[0] !== 0x1f || data[1] !== 0x8b) return data;
  try {
    const { buffer, engine } = gunzipSync(data, { info: true });
    if (engine.bytesWritten !== data.length) throw new Error("something follows its end");
    return buffer;
  } catch (error) {
    throw new Broken(`the bundle cannot be unzipped: ${error.message}`);
  }
}

/** The first line and those between it and the last one, which is checked here. */
function splitLines(data) {
  if (data.at(-1) !== 0x0a) throw new Broken("the bundle was cut: its last line has no end");
  const lines = [];
  for (let start = 0; start < data.length; ) {
    const stop = data.indexOf(0x0a, start);
    lines.push(data.subarray(start, stop));
    start = stop + 1;
  }
  const last = lines.pop();
  const end = parseObject(last, "the last line");
  if (!has(end, "end") || !has(end, "sha256")) throw new Broken("the bundle was cut: it has no end line");
  if (end.end !== lines.length) {
    throw new Broken(`the end line counts ${end.end} lines before it, there are ${lines.length}`);
  }
  if (end.sha256 !== sha256(data.subarray(0, data.length - last.length - 1)).toString("hex")) {
    throw new Broken("the bundle was changed: the end line has another sha256");
  }
  if (lines.length === 0) throw new Broken("the bundle has no first line");
  return [lines[0], lines.slice(1)];
}

function readSegments(line) {
  const head = parseObject(line, "the first line");
  const version = get(head, "wakelog");
  if (!isInt(version) || version < 1) throw new Broken("this is not a bundle: the first line has no version");
  if (version > VERSION) {
    throw new Broken(`the bundle is of format version ${version}; a reader of that version is needed`);
  }
  const listed = get(head, "segments");
  if (!Array.isArray(listed) || listed.length === 0) throw new Broken("the first line lists no segments");
  // A segment's `first` to `last` are its own events in the bundle; those up to `end` are of the history. A parent that
  // a fork leaves before its own first event has an `end` before its `first`: none are.
  const segments = [];
  for (const entry of listed) {
    if (!isObject(entry) || !isText(get(entry, "session"))) throw new Broken("a segment has no session");
    if (!isText(get(entry, "name", ""))) throw new Broken("a segment's name is not a string");
    const { session } = entry;
    const fork = get(entry, "fork") ?? null;
    const segment = { session, fork, number: segments.length, first: 1, last: 0, end: 0 };
    Object.assign(segment, { records: new Map(), commits: [] });
    if (segments.length === 0) {
      if (has(entry, "fork")) throw new Broken("the first segment is a fork: its parent is missing");
    } else {
      const told = isObject(fork) && isText(get(fork, "parent")) && isInt(get(fork, "at")) && isHash(get(fork, "hash"));
      if (!told) throw new Broken(`${session} does not say where it leaves its parent`);
      if (fork.at < 1) throw new Broken(`${session} leaves its parent before the first event`);
      segment.first = fork.at + 1;
    }
    if (segments.some((other) => other.session === session)) throw new Broken(`${session} is listed twice`);
    if (session.split(".")[0] !== listed[0].session) {
      throw new Broken(`${session} is not of the tree of ${listed[0].session}`);
    }
    segments.push(segment);
  }
  for (const segment of segments.slice(0, -1)) {
    segment.end = Math.min(...segments.slice(segment.number + 1).map((later) => later.fork.at));
  }
  const names = segments.map((segment) => segment.session);
  segments.slice(1).forEach((segment, place) => {
    if (names.includes(segment.fork.parent) && segment.fork.parent !== names[place]) {
      throw new Broken(`${segment.session} does not follow its parent`);
    }
  });
  if (get(head, "session") !== names.at(-1)) throw new Broken("the last segment is not the bundle's session");
  return segments;
}

function readRecord(parts, place, before) {
  if (!Array.isArray(parts) || parts.length !== 3 || !parts.every(isText)) {
    throw new Broken("a record is not [header, salt, body]", place);
  }
  const headerBytes = utf8(parts[0], "the header", place);
  const bodyBytes = utf8(parts[2], "the body", place);
  const header = parseObject(parts[0], "the header", place);
  const seq = get(header, "seq");
  if (seq !== place) throw new Broken(`the header says ${seq} where event ${place} should be`, place);
  const version = get(header, "v", 1);
  if (!isInt(version) || version < 1) throw new Broken("the header's version is not a number", place);
  if (version > VERSION) {
    throw new Broken(`event ${place} is of format version ${version}; a reader of that version is needed`, place);
  }
  const kind = get(header, "kind");
  const at = get(header, "at");
  const bodyHash = get(header, "body_hash");
  if (!isText(kind) || !isInt(at) || !isHash(bodyHash)) {
    throw new Broken("the header lacks its kind, its time or its body_hash", place);
  }
  const turn = get(header, "turn", 0);
  if (!isInt(turn)) throw new Broken("the header's turn is not a number", place);
  if (!/^([0-9a-f]{32})?$/.test(parts[1])) throw new Broken("the salt is not 16 bytes in hex", place);
  const salt = Buffer.from(parts[1], "hex");
  if (salt.length > 0 && bodyBytes.length === 0) throw new Broken("a record has a salt and no body", place);
  const form = salt.length > 0 ? "intact" : bodyBytes.length > 0 ? "replaced" : "pruned";
  if (form === "intact" && sha256(salt, bodyBytes).toString("hex") !== bodyHash) {
    throw new Broken("the body does not have the hash that its header names", place);
  }
  const readable = bodyBytes.length > 0 && !get(header, "codec") && !get(header, "key_id");
  const body = readable ? parseObject(parts[2], "the body", place) : null;
  return { seq, kind, at, turn, form, body, hash: sha256(before, headerBytes), commit: null, segment: null };
}

function readCommit(text, number) {
  const line = parseObject(text, `line ${number}`);
  const what = `the commit in line ${number}`;
  for (const [names, fits] of [
    [["session", "commit_id", "status"], isText],
    [["first", "last", "at", "epoch", "turn"], isInt],
    [["prev", "hash"], isHash],
  ]) {
    for (const name of names) if (!fits(get(line, name))) throw new Broken(`${what} has no ${name}`);
  }
  const { first, last } = line;
  const listed = get(line, "records");
  if (first < 1 || last < first || !Array.isArray(listed)) throw new Broken(`${what} holds no events`);
  if (listed.length !== last - first + 1) {
    throw new Broken(`${what} does not hold the events ${first} to ${last}`, first);
  }
  const commit = { line, first, last, records: [], payloads: new Map() };
  let before = Buffer.from(line.prev, "hex");
  listed.forEach((parts, offset) => {
    const record = readRecord(parts, first + offset, before);
    record.commit = commit;
    before = record.hash;
    commit.records.push(record);
  });
  if (before.toString("hex") !== line.hash) {
    throw new Broken("the chain is broken: the commit's hash is not that of its headers", last);
  }
  const payloads = get(line, "payloads", {});
  if (!isObject(payloads)) throw new Broken(`the payloads of ${what} are not an object`, first);
  for (const name of Object.keys(payloads)) {
    const content = isText(payloads[name]) ? Buffer.from(payloads[name], "base64") : Buffer.alloc(0);
    if (content.toString("base64") !== payloads[name]) throw new Broken(`payload ${name} is not base64`, first);
    if (sha256(content).toString("hex") !== name) {
      throw new Broken(`the content of payload ${name} has another hash`, first);
    }
    commit.payloads.set(name, content);
  }
  return commit;
}

/** Puts each commit where it belongs, and checks that the chain runs through all of them. */
function placeCommits(segments, lines) {
  let position = 0;
  lines.forEach((text, offset) => {
    const commit = readCommit(text, offset + 2);
    const { session } = commit.line;
    while (segments[position].session !== session) {
      position += 1;
      if (position === segments.length) {
        throw new Broken(`line ${offset + 2} is a commit of ${session}, out of place`, commit.first);
      }
    }
    const segment = segments[position];
    const before = segment.commits.at(-1);
    const first = before ? before.last + 1 : segment.first;
    const prev = before ? before.line.hash : segment.fork ? segment.fork.hash : ZERO.toString("hex");
    if (commit.first !== first) {
      throw new Broken(`event ${first} of ${session} should follow, not ${commit.first}`, first);
    }
    if (commit.line.prev !== prev) {
      throw new Broken("the chain is broken: the commit does not go on from the hash before it", commit.first);
    }
    segment.commits.push(commit);
    segment.last = commit.last;
    for (const record of commit.records) {
      record.segment = segment;
      segment.records.set(record.seq, record);
    }
  });
  segments.at(-1).end = segments.at(-1).last;
  for (const segment of segments) {
    const { session, fork, number, first, last, end } = segment;
    if (last < first || last < end) throw new Broken(`events of ${session} are missing`, last + 1);
    let before = recordAt(segments, number, first - 1);
    if (fork && before?.hash.toString("hex") !== fork.hash) {
      throw new Broken(`${session} names another hash for the event it was forked at`, first);
    }
    checkFirst(segment);
    for (let seq = first; seq <= last; seq += 1) {
      const record = segment.records.get(seq);
      if (before !== undefined && record.at < before.at) throw new Broken("time goes back", seq);
      before = record;
    }
  }
  const { number, last } = segments.at(-1);
  return Array.from({ length: last }, (_, place) => recordAt(segments, number, place + 1));
}

/** The record at `seq` in the history of segment `number`; undefined when the bundle does not hold it. */
function recordAt(segments, number, seq) {
  for (let place = number; place >= 0; place -= 1) {
    if (seq >= segments[place].first) return segments[place].records.get(seq);
  }
  return undefined;
}

const hashAt = (segments, number, seq) => (seq === 0 ? ZERO : recordAt(segments, number, seq)?.hash);

function checkFirst({ session, fork, first, records }) {
  const record = records.get(first);
  if (record.kind !== (fork ? "session.forked" : "session.opened")) {
    throw new Broken(`${session} starts with ${record.kind}`, first);
  }
  if (!fork || record.form !== "intact" || record.body === null) return;
  for (const name of ["parent", "at", "hash"]) {
    if (get(record.body, name) !== fork[name]) {
      throw new Broken(`the first line and session.forked name a different ${name}`, first);
    }
  }
}

// ---------------------------------------------------------------- what vouches for what is gone

/**
 * What the payload.erased events say: [event, Map of record to its body now], the newest last.
 *
 * An event of session S names positions in S's history. It need not be in the bundle's own history.
 */
function findErasures(segments) {
  const erasures = [];
  for (const segment of segments) {
    for (const event of segment.records.values()) {
      if (event.kind !== "payload.erased" || event.body === null) continue;
      const entries = get(event.body, "erased");
      if (!Array.isArray(entries)) continue;
      const bodies = new Map();
      for (const entry of entries) {
        if (isObject(entry) && isInt(get(entry, "seq")) && isObject(get(entry, "body"))) {
          bodies.set(recordAt(segments, segment.number, entry.seq), entry.body);
        }
      }
      erasures.push([event, bodies]);
    }
  }
  return erasures.sort(([a], [b]) => a.at - b.at || a.segment.number - b.segment.number || a.seq - b.seq);
}

/**
 * Each replaced record has the body that the newest payload.erased gives for it. Returns how many there are.
 *
 * An erase event may itself be replaced, by a newer one that took something out of it; it counts if it is in order.
 */
function checkReplaced(history, erasures) {
  const equal = (one, other) => canonicalText(one) === canonicalText(other);
  const newest = new Map();
  for (const [event, bodies] of erasures.toReversed()) {
    if (event.form !== "intact" && !(newest.has(event) && equal(newest.get(event), event.body))) continue;
    for (const [record, body] of bodies) if (!newest.has(record)) newest.set(record, body);
  }
  const replaced = history.filter((record) => record.form === "replaced");
  for (const record of replaced) {
    if (!newest.has(record)) {
      throw new Broken("the body was replaced, and no payload.erased says by what", record.seq);
    }
    if (record.body === null || !equal(newest.get(record), record.body)) {
      throw new Broken("the body is not the one that payload.erased gives for it", record.seq);
    }
  }
  return replaced.length;
}

/** The newest range.pruned of the segment's session that covers `seq`. */
function findPrune(segments, segment, seq) {
  const newestFirst = [...segment.records.values()].sort((a, b) => b.seq - a.seq);
  for (const record of newestFirst) {
    if (record.kind !== "range.pruned" || record.form !== "intact" || record.body === null) continue;
    const upto = get(record.body, "upto");
    if (!isInt(upto) || seq > upto || upto >= record.seq) continue;
    if (hashAt(segments, segment.number, upto)?.toString("hex") !== get(record.body, "last_hash")) {
      throw new Broken(`range.pruned names another hash for event ${upto}`, record.seq);
    }
    if (upto > segment.end) throw new Broken(`${segment.session} was pruned beyond where a fork leaves`, record.seq);
    return [record, upto];
  }
  throw new Broken("the body was pruned, and no range.pruned says so", seq);
}

function payload(segments, record, mention) {
  const at = get(mention, "at", 0);
  if (!isInt(at)) throw new Broken("a payload is mentioned without a place", record.seq);
  const place = at ? recordAt(segments, record.segment.number, at) : record;
  if (place === undefined) throw new Broken(`a payload should be with event ${at}, which is not there`, record.seq);
  const { payloads, records } = place.commit;
  if (!payloads.has(mention.$payload) && records.every((other) => other.form === "intact")) {
    throw new Broken("a payload is missing where nothing was erased or pruned", record.seq);
  }
  return payloads.get(mention.$payload);
}

function readBase(segments, record) {
  let base = get(record.body, "base");
  if (isObject(base) && has(base, "$payload")) {
    const content = payload(segments, record, base);
    if (content === undefined) throw new Broken("the base of range.pruned is missing", record.seq);
    base = parse(content, "the base of range.pruned", record.seq);
  }
  if (!isObject(base)) throw new Broken("the base of range.pruned is not a state", record.seq);
  return clone(base);
}

// ---------------------------------------------------------------- summaries

function checkSummary({ line, records, first }) {
  const same = (told, computed) => JSON.stringify(told) === JSON.stringify(computed);
  if (records.some((record) => record.at !== line.at)) {
    throw new Broken("the commit's time is not that of its events", first);
  }
  if (!same(get(line, "kinds"), [...new Set(records.map((record) => record.kind))])) {
    throw new Broken("the commit lists other kinds than its events have", first);
  }
  const turns = records.map((record) => record.turn).filter((turn) => turn !== 0);
  const range = turns.length > 0 ? [Math.min(...turns), Math.max(...turns)] : [0, 0];
  if (!same(get(line, "turns"), range)) throw new Broken("the commit lists other turns than its events have", first);
  const paths = get(line, "paths", []);
  const fingerprint = get(line, "fingerprint", "");
  if (records.some((record) => record.form !== "intact")) {
    if (!same(paths, []) || fingerprint !== "") {
      throw new Broken("the commit still has paths or a fingerprint of what was erased or pruned", first);
    }
    return;
  }
  if (records.every((record) => record.body !== null)) {
    const changed = records.filter((record) => record.kind === "file.changed");
    if (!same(paths, [...new Set(changed.map((record) => get(record.body, "path")).filter(isText))])) {
      throw new Broken("the commit lists other paths than its events have", first);
    }
  }
  if (fingerprint === "" && line.commit_id !== line.hash.slice(0, 16)) {
    throw new Broken("the commit's id is neither a caller's nor from its hash", first);
  }
  if (fingerprint !== "" && !isHash(fingerprint)) throw new Broken("the commit's fingerprint is not a hash", first);
}

function checkAfter({ line, last }, state) {
  const { lease, turn } = state;
  const known = isObject(lease) && isObject(turn);
  const same = known && lease.epoch === line.epoch && state.status === line.status && turn.number === line.turn;
  if (!same) throw new Broken("the commit's epoch, status or turn is not that of the state after it", last);
}

// ---------------------------------------------------------------- the fold

function step(state, { seq, kind, body }) {
  if (body === null) throw new Broken(`the body of event ${seq} is encrypted; it cannot be read`, seq);
  return apply(state, get(body, "delta", []), kind, seq);
}

function checkCheckpoint({ seq, kind, body }, state, erasures) {
  const wanted = get(body, "state_hash", "");
  if (kind !== "checkpoint.named" || wanted === "") return;
  for (const [event, bodies] of erasures) {
    const later = event.seq > seq || event.seq > event.segment.end;
    if (later && [...bodies.keys()].some((erased) => erased !== undefined && erased.seq <= seq)) return;
  }
  if (stateHash(state) !== wanted) {
    throw new Broken("the state is not the one whose hash the checkpoint recorded", seq);
  }
}

/** The state at `at`, having folded all there is. */
function fold(segments, erasures, at) {
  const origin = ({ number, first }) => recordAt(segments, number, first - 1);
  const branches = new Map(segments.slice(1).map((segment) => [origin(segment), null]));
  let wanted = {};
  let lost = 0;
  for (const segment of segments) {
    let state = segment.fork ? clone(branches.get(origin(segment))) : {};
    for (let seq = segment.first; seq <= segment.end; seq += 1) {
      let record = segment.records.get(seq);
      if (record.form === "pruned") {
        const [witness, upto] = findPrune(segments, segment, seq);
        state = readBase(segments, witness);
        if (seq <= at && at < upto) lost = upto;
        seq = upto;
        record = segment.records.get(upto);
      } else {
        if (record.body !== null) checkCheckpoint(record, state, erasures);
        state = step(state, record);
      }
      if (record.commit.last === seq) checkAfter(record.commit, state);
      if (branches.has(record)) branches.set(record, clone(state));
      if (seq === at) wanted = clone(state);
    }
    foldBeyond(segment, state, branches);
  }
  if (lost) throw new Broken(`the state at ${at} is no longer known: the session was pruned up to ${lost}`, at);
  return wanted;
}

/**
 * Events that are not of the history: nothing is asked of them but that their commits' summaries are right.
 *
 * Nothing may vouch for a body that was replaced there. From such a one on, the state is not known.
 */
function foldBeyond({ first, last, end, records }, stateAtEnd, branches) {
  let state = last > end ? clone(stateAtEnd) : null;
  for (let seq = Math.max(first, end + 1); seq <= last; seq += 1) {
    const record = records.get(seq);
    if (state === null || record.form !== "intact" || record.body === null) return;
    state = step(state, record);
    if (record.commit.last === seq) checkAfter(record.commit, state);
    if (branches.has(record)) branches.set(record, clone(state));
  }
}

function checkAnchor(segments, anchor) {
  const whole = isObject(anchor) && isInt(anchor.seq) && isHash(anchor.hash) && isText(anchor.session);
  if (!whole || anchor.seq < 0) throw new Broken("the anchor is not a session, a seq and a hash");
  const { session, seq, hash } = anchor;
  const number = segments.findIndex((segment) => segment.session === session);
  if (number < 0) throw new Broken(`the anchor is for ${session}, which is not in the bundle`, seq);
  const known = hashAt(segments, number, seq);
  if (known === undefined) {
    throw new Broken(`the anchor knows event ${seq}, which is not in the bundle: newer events were left out`, seq);
  }
  if (known.toString("hex") !== hash) throw new Broken("the anchor has another hash for this event", seq);
}

/** Mentions whose payload was erased or pruned. What is there must have the size they say. */
function countMissing(segments, history) {
  let missing = 0;
  for (const record of history) {
    if (record.form !== "intact" || record.body === null) continue;
    for (const mention of Object.values(record.body)) {
      if (!isObject(mention) || !isText(get(mention, "$payload"))) continue;
      const content = payload(segments, record, mention);
      if (content === undefined) missing += 1;
      else if (get(mention, "size", 0) !== content.length) {
        throw new Broken("a payload does not have the size that its mention says", record.seq);
      }
    }
  }
  return missing;
}

function readBundle({ path, at, anchor }) {
  const [first, rest] = splitLines(readFile(path));
  const segments = readSegments(first);
  const history = placeCommits(segments, rest);
  const erasures = findErasures(segments);
  const replaced = checkReplaced(history, erasures);
  for (const segment of segments) segment.commits.forEach(checkSummary);
  const head = history.length;
  const wanted = at ?? head;
  const state = fold(segments, erasures, wanted);
  const missing = countMissing(segments, history);
  if (anchor !== undefined) checkAnchor(segments, anchor);
  if (wanted > head) throw new Broken(`there is no event ${wanted}: the session has ${head}`, wanted);
  return {
    session: segments.at(-1).session,
    events: wanted,
    head_hash: (wanted ? history[wanted - 1].hash : ZERO).toString("hex"),
    state_hash: stateHash(state),
    state,
    erased: replaced,
    pruned: history.filter((record) => record.form === "pruned").length,
    payloads_gone: missing,
    ok: true,
  };
}

function readArguments(words) {
  const options = { path: undefined, at: undefined, anchor: undefined };
  for (let place = 0; place < words.length; place += 1) {
    const word = words[place];
    if (word === "--at" || word === "--anchor") {
      place += 1;
      if (place === words.length) throw new Broken(`${word} needs a value`);
      if (word === "--anchor") options.anchor = parse(words[place], "the anchor");
      else if (INDEX.test(words[place])) options.at = Number(words[place]);
      else throw new Broken("--at needs a seq");
    } else if (options.path === undefined) {
      options.path = word;
    } else {
      throw new Broken(`${word} is one argument too many`);
    }
  }
  if (options.path === undefined) throw new Broken("usage: reader.mjs BUNDLE [--at SEQ] [--anchor JSON]");
  return options;
}

function answer(words) {
  try {
    return readBundle(readArguments(words));
  } catch (error) {
    if (error instanceof Broken) return { ok: false, error: error.message, seq: error.seq };
    return { ok: false, error: `the bundle is not as it should be: ${error}`, seq: 0 };
  }
}

function main(words) {
  const many = words.length === 1 && words[0] === "-";
  const commands = many ? readFileSync(0, "utf8").trim().split("\n").map((line) => JSON.parse(line)) : [words];
  const results = commands.map(answer);
  process.exitCode = results.every((result) => result.ok) ? 0 : 1;
  process.stdout.write(results.map((result) => `${JSON.stringify(result)}\n`).join(""));
}

main(process.argv.slice(2));
