// The one door to the server: the public HTTP API under /v1, typed. Times are microseconds, positions event numbers.

export interface Page<T> {
  rows: T[];
  next: string;
  as_of: { cursor: string; at: number; damaged: number };
}

export interface Info {
  version: string;
  durability: string;
  namespace: string;
  scopes: string[];
  redacts: boolean;
}

export interface SessionInfo {
  id: string;
  name: string;
  root: string;
  parent: string | null;
  forked_at: number | null;
  spawner: string;
  agent: string;
  status: string;
  outcome: string;
  goal: string | null;
  labels: Record<string, string>;
  turn: number;
  turns: number;
  events: number;
  first_at: number;
  last_at: number;
  tokens: number;
  usd_micros: number;
  pending: number;
  flags: number;
  last_error: string;
  head: number;
  damaged: string;
  about: string;
}

export interface TurnInfo {
  session: string;
  turn: number;
  attempt: number;
  first: number;
  last: number;
  started_at: number;
  ended_at: number | null;
  outcome: string;
  input: string;
  events: number;
  tool_calls: number;
  tool_errors: number;
  model_calls: number;
  files: number;
  added: number;
  removed: number;
  tokens: number;
  tokens_out: number;
  usd_micros: number;
  trust: string;
  in_view: boolean;
  attempts: number;
}

export interface EventInfo {
  session: string;
  seq: number;
  turn: number;
  attempt: number;
  kind: string;
  at: number;
  occurred_at: number;
  actor: string;
  tool: string;
  model: string;
  effect: string;
  action: string;
  path: string;
  key: string;
  outcome: string;
  summary: string;
  cause: number;
  trust: string;
  source: string;
  tokens: number;
  tokens_out: number;
  usd_micros: number;
  duration_us: number;
  commit_id: string;
  gone: string;
  in_view: boolean;
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export interface EventRecord {
  session: string;
  seq: number;
  kind: string;
  at: number;
  turn: number;
  attempt: number;
  actor: string;
  tool: string;
  cause: number;
  derived_from: [number, number][];
  source: string;
  trust: string;
  commit_id: string;
  hash: string;
  intact: boolean;
  body: JsonObject;
  delta: JsonObject[];
}

/** Events that cannot be read, and why. */
export interface Hole {
  first: number;
  last: number;
  why: string;
}

export interface Head {
  session: string;
  name: string;
  seq: number;
  hash: string;
  at: number;
  epoch: number;
  status: string;
  turn: number;
  commit_id: string;
  parent: { session: string; at: number } | null;
}

export interface SessionState {
  head: Head;
  holder: string;
  goal: Json;
  labels: JsonObject;
  turn: JsonObject;
  view: JsonObject;
  pending_actions: { [id: string]: JsonObject };
  flags: { [name: string]: JsonObject };
  budget: JsonObject;
  last_error: JsonObject | null;
}

export interface CostRow {
  key: string;
  tokens_in: number;
  tokens_out: number;
  usd_micros: number;
  duration_us: number;
  unpriced_tokens: number;
}

export interface Costs {
  by: string;
  rows: CostRow[];
  total: CostRow;
}

export interface Table {
  columns: string[];
  rows: (string | number | null)[][];
  truncated: boolean;
}

export interface SessionCounts {
  total: number;
  counts: { facet: string; value: string; count: number }[];
  is_cut: boolean;
}

/** One session of the fleet. */
export interface LiveSession {
  session: string;
  name: string;
  agent: string;
  status: string;
  needs: string[];
  at: number;
  seq: number;
  turn: JsonObject;
  holder: string;
  goal: Json;
  labels: JsonObject;
  pending: { [id: string]: JsonObject };
  flags: { [name: string]: JsonObject };
  budget: JsonObject;
  last_error: JsonObject | null;
  tokens: number;
  usd_micros: number;
  about: string;
}

export interface LiveList {
  sessions: LiveSession[];
  resting: number;
  unreadable: { session: string; name: string; problem: string }[];
  now: number;
}

/** What went wrong, as the server tells it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
    readonly hint = "",
    readonly retryable = false,
  ) {
    super(message);
  }
}

type QueryValue = string | number | boolean | null | undefined | readonly string[];
export type Query = Record<string, QueryValue>;

let onKeyLost: () => void = () => {};

/** Tells what to do when the server no longer takes the page's key. */
export function whenKeyLost(listener: () => void): void {
  onKeyLost = listener;
}

export function apiAddress(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    if (Array.isArray(value)) for (const each of value) search.append(name, each);
    else search.set(name, String(value));
  }
  return `/v1${path}${search.size ? `?${search}` : ""}`;
}

/** A segment of a path. */
export const seg = encodeURIComponent;

async function answer<T>(address: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(address, { credentials: "same-origin", ...init });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Problem(0, "server-lost", "The server does not answer.", "Start it again: wakelog ui", true);
  }
  if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
  const told = (await response.json().catch(() => ({}))) as Partial<Record<string, string | boolean>>;
  if (response.status === 401) onKeyLost();
  throw new Problem(
    response.status,
    String(told.kind ?? "unknown"),
    String(told.detail ?? told.message ?? told.title ?? response.statusText),
    String(told.hint ?? ""),
    told.retryable === true,
  );
}

export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return answer<T>(apiAddress(path, query), { signal });
}

export function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers = { "content-type": "application/json" };
  return answer<T>(`/v1${path}`, { method: "POST", headers, body: JSON.stringify(body), signal });
}

/** Hands the key in and gets a cookie for it that no script can read. */
export function enter(key: string): Promise<void> {
  return answer<void>("/enter", { method: "POST", headers: { authorization: `Bearer ${key}` } });
}

export interface EventsQuestion {
  session: string;
  kinds?: string[];
  tool?: string;
  turns?: [number, number];
  rewound?: boolean;
  newest_first?: boolean;
  after?: number;
  limit?: number;
}

export const api = {
  info: (signal?: AbortSignal) => get<Info>("/info", {}, signal),
  sessions: (query: Query, signal?: AbortSignal) => get<Page<SessionInfo>>("/sessions", query, signal),
  counts: (query: Query, signal?: AbortSignal) => get<SessionCounts>("/session-counts", query, signal),
  live: (query: Query, signal?: AbortSignal) => get<LiveList>("/live", query, signal),
  session: (session: string, signal?: AbortSignal) => get<SessionState>(`/sessions/${seg(session)}`, {}, signal),
  turns: (session: string, query: Query, signal?: AbortSignal) =>
    get<Page<TurnInfo>>(`/sessions/${seg(session)}/turns`, query, signal),
  /** One line each, from the index. */
  rows: (question: EventsQuestion, signal?: AbortSignal) => post<Page<EventInfo>>("/index/events", question, signal),
  /** In full, from the log. */
  events: (session: string, query: Query, signal?: AbortSignal) =>
    get<{ events: EventRecord[]; next: number | null; holes: Hole[] }>(`/sessions/${seg(session)}/events`, query, signal),
  event: (session: string, place: string, payloads = 65536, signal?: AbortSignal) =>
    get<EventRecord>(`/sessions/${seg(session)}/events/${seg(place)}`, { payloads }, signal),
  sql: (sql: string, params: Json[] | JsonObject = [], signal?: AbortSignal) =>
    post<Table>("/query", { sql, params }, signal),
};

/** Follows events live; one session or, without one, all. Goes on by itself after a break. */
export function tail(
  session: string | null,
  after: number | undefined,
  on: { event: (record: EventRecord) => void; state?: (connected: boolean) => void },
): () => void {
  const path = session === null ? "/tail" : `/sessions/${seg(session)}/tail`;
  const source = new EventSource(apiAddress(path, { after }));
  source.onopen = () => on.state?.(true);
  source.onerror = () => on.state?.(false);
  const take = (message: MessageEvent<string>) => on.event(JSON.parse(message.data) as EventRecord);
  source.onmessage = take;
  source.addEventListener("end", () => source.close());
  return () => source.close();
}
