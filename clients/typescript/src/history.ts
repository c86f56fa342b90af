// The history in a bundle: where each record stands, and what vouches for those that were erased or pruned.

import { BrokenBundleError, canonicalText, get, has, isInt, isObject, isText } from "./json.ts";
import type { Json, JsonObject } from "./json.ts";
import { toHex } from "./hashes.ts";
import type { Segment, StoredCommit, StoredRecord } from "./segments.ts";
import { ZERO } from "./segments.ts";

/** What a payload.erased event says: the body that each record it names has now. */
export type Erasure = [StoredRecord, Map<StoredRecord, JsonObject>];

/** The record at `seq` in the history of segment `number`; undefined when the bundle does not hold it. */
export function recordAt(segments: Segment[], number: number, seq: number): StoredRecord | undefined {
  for (const segment of segments.slice(0, number + 1).reverse()) {
    if (seq >= segment.first) return segment.records.get(seq);
  }
  return undefined;
}

export const hashAt = (segments: Segment[], number: number, seq: number): string | undefined =>
  seq === 0 ? toHex(ZERO) : recordAt(segments, number, seq)?.hash;

/** Puts each commit where it belongs, checks that the chain runs through all of them, and gives the history. */
export function placeCommits(segments: Segment[], commits: StoredCommit[]): StoredRecord[] {
  let position = 0;
  commits.forEach((commit, offset) => {
    while (segments[position]?.session !== commit.session) {
      position += 1;
      if (position >= segments.length) {
        const sentence = `line ${offset + 2} is a commit of ${commit.session}, out of place`;
        throw new BrokenBundleError(sentence, commit.first);
      }
    }
    placeCommit(segments[position] as Segment, commit);
  });
  const newest = segments.at(-1) as Segment;
  newest.end = newest.last;
  for (const segment of segments) checkSegment(segments, segment);
  return Array.from({ length: newest.last }, (_, at) => recordAt(segments, newest.number, at + 1) as StoredRecord);
}

function placeCommit(segment: Segment, commit: StoredCommit): void {
  const before = segment.commits.at(-1);
  const first = before ? before.last + 1 : segment.first;
  if (commit.first !== first) {
    throw new BrokenBundleError(`event ${first} of ${segment.session} should follow, not ${commit.first}`, first);
  }
  if (commit.prev !== (before?.hash ?? segment.fork?.hash ?? toHex(ZERO))) {
    const sentence = "the chain is broken: the commit does not go on from the hash before it";
    throw new BrokenBundleError(sentence, commit.first);
  }
  segment.commits.push(commit);
  segment.last = commit.last;
  for (const record of commit.records) segment.records.set(record.seq, record);
}

function checkSegment(segments: Segment[], { session, fork, number, first, last, end, records }: Segment): void {
  if (last < first || last < end) throw new BrokenBundleError(`events of ${session} are missing`, last + 1);
  let before = recordAt(segments, number, first - 1);
  if (fork && before?.hash !== fork.hash) {
    throw new BrokenBundleError(`${session} names another hash for the event it was forked at`, first);
  }
  const opening = records.get(first) as StoredRecord;
  if (opening.kind !== (fork ? "session.forked" : "session.opened")) {
    throw new BrokenBundleError(`${session} starts with ${opening.kind}`, first);
  }
  if (fork && opening.form === "intact" && opening.body !== null) {
    for (const name of ["parent", "at", "hash"] as const) {
      if (get(opening.body, name) !== fork[name]) {
        throw new BrokenBundleError(`the first line and session.forked name a different ${name}`, first);
      }
    }
  }
  for (let seq = first; seq <= last; seq += 1) {
    const record = records.get(seq) as StoredRecord;
    if (before !== undefined && record.at < before.at) throw new BrokenBundleError("time goes back", seq);
    before = record;
  }
}

/**
 * What the payload.erased events say, the newest last. An event of session S names positions in S's history. It need not
 * be in the bundle's own history.
 */
export function findErasures(segments: Segment[]): Erasure[] {
  const erasures: Erasure[] = [];
  for (const segment of segments) {
    for (const event of segment.records.values()) {
      const entries = event.kind === "payload.erased" && event.body !== null ? get(event.body, "erased") : undefined;
      if (!Array.isArray(entries)) continue;
      const bodies = new Map<StoredRecord, JsonObject>();
      for (const entry of entries) {
        if (!isObject(entry)) continue;
        const [seq, body] = [get(entry, "seq"), get(entry, "body")];
        const record = isInt(seq) ? recordAt(segments, segment.number, seq) : undefined;
        if (record !== undefined && isObject(body)) bodies.set(record, body);
      }
      erasures.push([event, bodies]);
    }
  }
  return erasures.sort(([a], [b]) => a.at - b.at || a.segment.number - b.segment.number || a.seq - b.seq);
}

/**
 * Checks that each replaced record has the body that the newest payload.erased gives for it; returns how many there are.
 * An erase event may itself be replaced, by a newer one that took something out of it; it counts if it is in order.
 */
export function checkReplaced(history: StoredRecord[], erasures: Erasure[]): number {
  const isEqual = (one: Json, other: Json): boolean => canonicalText(one) === canonicalText(other);
  const newest = new Map<StoredRecord, JsonObject>();
  for (const [event, bodies] of [...erasures].reverse()) {
    const told = newest.get(event);
    if (event.form !== "intact" && !(told !== undefined && isEqual(told, event.body))) continue;
    for (const [record, body] of bodies) if (!newest.has(record)) newest.set(record, body);
  }
  const replaced = history.filter((record) => record.form === "replaced");
  for (const record of replaced) {
    const told = newest.get(record);
    if (told === undefined) {
      throw new BrokenBundleError("the body was replaced, and no payload.erased says by what", record.seq);
    }
    if (record.body === null || !isEqual(told, record.body)) {
      throw new BrokenBundleError("the body is not the one that payload.erased gives for it", record.seq);
    }
  }
  return replaced.length;
}

/** The newest range.pruned of the segment's session that covers `seq`, and where it ends. */
export function findPrune(segments: Segment[], segment: Segment, seq: number): [StoredRecord, number] {
  for (const record of [...segment.records.values()].sort((a, b) => b.seq - a.seq)) {
    if (record.kind !== "range.pruned" || record.form !== "intact" || record.body === null) continue;
    const upto = get(record.body, "upto");
    if (!isInt(upto) || seq > upto || upto >= record.seq) continue;
    if (hashAt(segments, segment.number, upto) !== get(record.body, "last_hash")) {
      throw new BrokenBundleError(`range.pruned names another hash for event ${upto}`, record.seq);
    }
    if (upto > segment.end) {
      throw new BrokenBundleError(`${segment.session} was pruned beyond where a fork leaves`, record.seq);
    }
    return [record, upto];
  }
  throw new BrokenBundleError("the body was pruned, and no range.pruned says so", seq);
}

/** The content of a payload that a record mentions; undefined when it was erased or pruned. */
export function payloadOf(segments: Segment[], record: StoredRecord, mention: JsonObject): Uint8Array | undefined {
  const at = get(mention, "at", 0);
  if (!isInt(at)) throw new BrokenBundleError("a payload is mentioned without a place", record.seq);
  const place = at ? recordAt(segments, record.segment.number, at) : record;
  if (place === undefined) {
    throw new BrokenBundleError(`a payload should be with event ${at}, which is not there`, record.seq);
  }
  const { payloads, records } = place.commit;
  const content = payloads.get(String(mention["$payload"]));
  if (content === undefined && records.every((other) => other.form === "intact")) {
    throw new BrokenBundleError("a payload is missing where nothing was erased or pruned", record.seq);
  }
  return content;
}

export const isMention = (value: Json | undefined): value is JsonObject =>
  isObject(value) && has(value, "$payload") && isText(value["$payload"]);
