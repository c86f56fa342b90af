// What the pages beyond a single session ask for: comparisons, influence, cost, audit and the store's health.
import { get, post, seg, type Costs, type Json, type JsonObject, type Page, type Query } from "./api";

export interface Step {
  kind: string;
  name: string;
  seq: number;
  turn: number;
  attempt: number;
  at: number;
  ended_at: number;
  input: Json;
  output: Json;
  outcome: string;
  error: Json;
  trust: string;
  source: string;
  gone: string;
}

export interface Cost {
  tokens_in?: number;
  tokens_out?: number;
  usd_micros?: number;
}

export interface Course {
  session: string;
  name: string;
  turn: number;
  attempt: number;
  first: number;
  last: number;
  outcome: string;
  in_view: boolean;
  steps: Step[];
  cost: Cost;
  duration_us: number;
  untrusted: string[];
  files: string[];
  gone: number;
}

export interface Difference {
  what: string;
  pointer: string;
  a: Json;
  b: Json;
  by_hash: boolean;
}

export interface WindowItem {
  title?: string;
  key?: string;
  kind?: string;
}

/** A message that a model was not given. */
export interface HeldBack {
  seq: number;
  name: string;
  content: Json;
}

export interface Factor {
  what: string;
  verdict: string;
  note: string;
  differences: Difference[];
  only_a: JsonObject[];
  only_b: JsonObject[];
  changes: Change[];
  held_back_a: HeldBack[];
  held_back_b: HeldBack[];
}

export interface Change {
  part: string;
  pointer: string;
  how: string;
  before: Json;
  after: Json;
}

export interface Pair {
  a: Course;
  b: Course;
  rows: { a: number | null; b: number | null; verdict: string; what: string[]; minor: string[] }[];
  divergence: {
    row: number;
    same_before: number;
    what: string[];
    a: number | null;
    b: number | null;
    differences: Difference[];
    behind: Factor[];
  } | null;
  ends: Change[];
  shared: number;
  notes: string[];
}

export interface Comparison {
  courses: Course[];
  pairs: Pair[];
}

export interface Box {
  seq: number;
  turn: number;
  attempt: number;
  kind: string;
  tool: string;
  title: string;
  source: string;
  trust: string;
  place: "origin" | "between" | "end";
  hops: number;
  folded: number;
  condition: string;
}

export interface Line {
  first: number;
  last: number;
  edge: string | null;
  known: "recorded" | "matched" | "derived" | "unknown";
  may: boolean;
  text: string;
}

export interface Influence {
  session: string;
  at: number;
  target: { what: string; kind: string; seqs: number[]; note: string };
  direction: "causes" | "effects";
  boxes: Box[];
  lines: Line[];
  sources: string[];
  reached: number;
  folded: number;
  limits: string[];
}

/** Something that depends on a source. */
export interface Touched {
  seq: number;
  part: string;
  name: string;
  turn: number;
  known: Line["known"];
  may: boolean;
  trust: string;
  effect: string;
  outcome: string;
  in_view: boolean;
  is_current: boolean;
}

export interface TouchedSession {
  session: string;
  name: string;
  roots: number[];
  items: Touched[];
  reached: number;
}

export interface TaintEverywhere {
  what: string;
  sessions: TouchedSession[];
  limits: string[];
}

/** Two sets of sessions, and what differs between them. */
export interface CohortDifference {
  name: string;
  unit: string;
  a: number;
  b: number;
  difference: number;
  low: number;
  high: number;
  verdict: string;
}

export interface CohortComparison {
  a: number;
  b: number;
  tasks: number;
  compared: number;
  differences: CohortDifference[];
  notes: string[];
}

export interface Hit {
  session: string;
  name: string;
  seq: number;
  turn: number;
  attempt: number;
  kind: string;
  at: number;
  tool: string;
  trust: string;
  in_view: boolean;
  snippet: string;
  rank: number;
}

export interface Anchor {
  session: string;
  seq: number;
  hash: string;
  at: number;
}

export interface Hold {
  session: string;
  name: string;
  reason: string;
  since: number;
  seq: number;
}

export interface AuditEntry {
  seq: number;
  at: number;
  turn: number;
  concern: string;
  kind: string;
  actor: string;
  by: string;
  why: string;
  what: string;
  events: number[];
}

export interface Audit {
  session: string;
  name: string;
  anchor: Anchor;
  hold: Hold | null;
  entries: AuditEntry[];
  next: string;
  damaged: string;
}

export interface VerifyReport {
  session: string;
  events: number;
  head_hash: string;
  integrity: { seq: number; what: string }[];
  completeness: { seq: number; what: string }[];
  scope: Record<string, number>;
  anchored: boolean;
  uncovered: number;
}

export interface StoreInfo {
  path: string | null;
  engine: string;
  durability: string;
  sessions: number;
  by_status: Record<string, number>;
  forks: number;
  held: number | null;
  unreadable: number | null;
  events: number;
  files: Record<string, number>;
  by_kind: { kind: string; events: number; bytes: number }[];
  is_sampled: boolean;
  oldest: number | null;
  newest: number | null;
  retention: string;
  version: number | null;
  waiting: number;
  blobs: string | null;
  scrubbed: { ended: number | null; sessions: number; damage: number } | null;
  redacts: boolean;
}

export interface StoreCheck {
  what: string;
  level: "ok" | "warn" | "fail";
  found: string;
  fix: string;
}

const of = (session: string) => `/sessions/${seg(session)}`;

export const looks = {
  compare: (side: string[], signal?: AbortSignal) => get<Comparison>("/compare", { side }, signal),
  influence: (session: string, query: Query, signal?: AbortSignal) =>
    get<Influence>(`${of(session)}/picture`, query, signal),
  taint: (query: Query, signal?: AbortSignal) => get<TaintEverywhere>("/taint", query, signal),
  cohorts: (a: Record<string, string>, b: Record<string, string>, signal?: AbortSignal) =>
    post<CohortComparison>("/index/cohorts", { a: { where: a }, b: { where: b } }, signal),
  search: (query: Query, signal?: AbortSignal) => get<Page<Hit>>("/search", query, signal),
  costs: (query: Query, signal?: AbortSignal) => get<Costs>("/cost", query, signal),
  audit: (session: string, after: string, signal?: AbortSignal) =>
    get<Audit>(`${of(session)}/audit`, { after }, signal),
  holds: (signal?: AbortSignal) => get<{ found: Hold[]; unreadable: string[] }>("/holds", {}, signal),
  verify: (session: string, signal?: AbortSignal) => get<VerifyReport>(`${of(session)}/verify`, {}, signal),
  verifyAgainst: (session: string, anchor: Pick<Anchor, "seq" | "hash" | "at">, signal?: AbortSignal) =>
    post<VerifyReport>(`${of(session)}/verify`, { seq: anchor.seq, hash: anchor.hash, at: anchor.at }, signal),
  store: (signal?: AbortSignal) => get<StoreInfo>("/store", {}, signal),
  checks: (signal?: AbortSignal) => get<{ checks: StoreCheck[] }>("/store/check", {}, signal),
};

/** What a model's answer says, without its other blocks; empty for any other value. */
export function spokenWords(value: Json): string {
  const content = value !== null && typeof value === "object" && !Array.isArray(value) ? value.content : null;
  if (!Array.isArray(content)) return "";
  const texts = content.map((block) => (block !== null && typeof block === "object" && !Array.isArray(block) ? block.text : null));
  return texts.filter((text) => typeof text === "string" && text).join(" ");
}

/** A value in a line: texts as they are, all else as JSON. */
export function line(value: Json, most = 200): string {
  const text = value === null || value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
  const flat = text.replace(/\s+/g, " ");
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}
