// The shapes of the protocol, from docs/reference/protocol.schema.json. Written by docs/generate.py; do not edit.

import type { Json, JsonObject } from "./json.ts";

/** The request was carried out. */
export interface Acknowledged {}

export interface ActionAbandoned {
  action: string;
  inherited?: boolean;
  why?: string;
  occurred_at?: number;
}

export interface ActionApproved {
  action: string;
  by?: string;
  why?: string;
  occurred_at?: number;
}

export interface ActionDenied {
  action: string;
  by?: string;
  why?: string;
  occurred_at?: number;
}

/** A late or fenced worker reports an outcome. It is always accepted, and only `reconcile` uses it. */
export interface ActionEvidence {
  action: string;
  outcome?: string;
  output?: Json;
  epoch?: number;
  why?: string;
  occurred_at?: number;
}

/** A call failed for certain. With `retry` the action goes back to requested. */
export interface ActionFailed {
  action: string;
  error: Failure;
  /** What had arrived of a stream that broke or was left. */
  output?: Json;
  retry?: boolean;
  cost?: Cost;
  stream?: JsonObject;
  why?: string;
  occurred_at?: number;
}

export interface ActionReconciled {
  action: string;
  outcome: "failed" | "never_ran" | "succeeded";
  output?: Json;
  output_summary?: string;
  by?: string;
  why?: string;
  occurred_at?: number;
}

/** A call that had ended before it was recorded: request and outcome in one event. It is for importers, recorders and frameworks that report at the end of a turn. A call with effects that wakelog runs itself is requested first. */
export interface ActionRecorded {
  action: string;
  tool: string;
  effect?: "external" | "model" | "pure" | "read" | "write";
  /** `denied`: it did not run, because a person or a rule refused it. `cancelled`: it did not run, or was stopped, for another reason. `interrupted`: the agent ended before an answer came. */
  outcome?: "cancelled" | "denied" | "failed" | "interrupted" | "succeeded" | "timed_out";
  input?: Json;
  input_hash?: string;
  output?: Json;
  output_summary?: string;
  error?: Failure | null;
  cost?: Cost;
  params?: JsonObject;
  stop_reason?: string;
  stream?: JsonObject;
  /** The event whose outcome this repeats: the call was not run again, and costs nothing. */
  reused?: number;
  inside?: string;
  group?: string;
  why?: string;
  occurred_at?: number;
}

export interface ActionRequested {
  action: string;
  tool: string;
  effect?: "external" | "model" | "pure" | "read" | "write";
  input?: Json;
  input_hash?: string;
  /** The idempotency key that a retry is sent with. */
  key?: string;
  approval?: boolean;
  policy?: JsonObject;
  /** For a model call: model and parameters. */
  params?: JsonObject;
  context_hash?: string;
  /** For a model call: the hash of its system prompt, if it has one. */
  prompt_hash?: string;
  /** The action whose tool made this call. */
  inside?: string;
  /** The action of the model's answer that requested it: calls of one group were requested together. */
  group?: string;
  why?: string;
  occurred_at?: number;
}

export interface ActionStarted {
  action: string;
  attempt?: number;
  why?: string;
  occurred_at?: number;
}

export interface ActionSucceeded {
  action: string;
  output?: Json;
  output_summary?: string;
  cost?: Cost;
  stop_reason?: string;
  /** For a streamed answer: its shape and number of parts, to return it as a stream again. */
  stream?: JsonObject;
  why?: string;
  occurred_at?: number;
}

export interface ActionTimedOut {
  action: string;
  after_us?: number;
  retry?: boolean;
  cost?: Cost;
  why?: string;
  occurred_at?: number;
}

/** It is unknown whether the effect happened. The call stays pending until it is reconciled. */
export interface ActionUncertain {
  action: string;
  /** What the tool raised, if anything. */
  error?: Failure | null;
  why?: string;
  occurred_at?: number;
}

/** An anchor kept elsewhere: a head that the log must still contain. */
export interface AgainstAnchor {
  seq: number;
  hash: string;
  at?: number;
}

/** A head that is kept elsewhere, to check a session against later. */
export interface Anchor {
  session: string;
  seq: number;
  hash: string;
  at: number;
}

/** Events to store as one commit. With `expect`, the session must be at that event, else it is a conflict. `commit_id` makes the append safe to repeat: the same id with the same events gives the first answer and stores nothing. `guard` is the epoch of the writer's lease. */
export interface Append {
  events: Array<EventIn>;
  expect?: number | null;
  commit_id?: string;
  guard?: number | null;
}

export interface ArtefactRecorded {
  name: string;
  uri?: string;
  media?: string;
  content?: Json;
  why?: string;
  occurred_at?: number;
}

/** How far the index had read when it answered: everything stored before the question was asked. `cursor` is the place in the engine's feed, `at` the time of the newest event. `damaged` counts sessions that could not be read to their end; the `damaged` column of `sessions` says why. */
export interface AsOf {
  cursor: string;
  at: number;
  damaged: number;
}

/** A heartbeat of the lease's holder. */
export interface BeatLease {
  epoch: number;
  holder: string;
  ttl_s?: number;
}

export interface BudgetReached {
  limit: string;
  why?: string;
  occurred_at?: number;
}

/** Limits to set (`tokens`, `usd_micros`, `duration_us`); None removes one. */
export interface BudgetSet {
  limits: Record<string, number | null>;
  why?: string;
  occurred_at?: number;
}

export interface BudgetSpent {
  cost: Cost;
  why?: string;
  occurred_at?: number;
}

/** A name for a point. With `remove`, the name is removed. */
export interface Checkpoint {
  name: string;
  at?: string;
  remove?: boolean;
}

/** A point got a name. With `remove` the name was removed. */
export interface CheckpointNamed {
  name: string;
  at: number;
  remove?: boolean;
  state_hash?: string;
  why?: string;
  occurred_at?: number;
}

export interface Close {
  outcome?: string;
  why?: string;
}

/** Something was evicted from the model's window. `handle` (a seq) restores it. */
export interface ContextEvicted {
  key: string;
  handle: number;
  tokens?: number;
  why?: string;
  occurred_at?: number;
}

export interface ContextRestored {
  key: string;
  why?: string;
  occurred_at?: number;
}

/** What something cost. All integers; zero means "not reported". */
export interface Cost {
  tokens_in?: number;
  tokens_out?: number;
  usd_micros?: number;
  duration_us?: number;
  /** Of `tokens_in`, those read from a provider's cache. */
  cache_read_tokens?: number;
  /** Of `tokens_in`, those written to it. */
  cache_write_tokens?: number;
  /** Of `tokens_out`, those that are known to be reasoning. */
  reasoning_tokens?: number;
  /** The price used to compute the money; empty if the money was reported, or no price is known. */
  price?: string;
}

export interface DeadEndNoted {
  tried: string;
  learned?: string;
  why?: string;
  occurred_at?: number;
}

export interface DecisionMade {
  choice: string;
  because?: string;
  alternatives?: Array<string>;
  assumptions?: Array<string>;
  evidence?: Array<number | string>;
  why?: string;
  occurred_at?: number;
}

/** The events to erase, here and in every fork that shares them. */
export interface Erase {
  events: Array<number>;
  why?: string;
  by?: string;
}

/** The session's head after an erasure, and what was erased. */
export interface EraseAnswer {
  session: string;
  name: string;
  seq: number;
  hash: string;
  at: number;
  epoch: number;
  status: string;
  turn: number;
  commit_id: string;
  parent?: Parent | null;
  /** The erased events by session, including forks, adopting sessions and events that repeated the content. */
  events?: Record<string, Array<number>>;
  /** Keys and paths of the erased content. They stay. */
  names?: Array<string>;
  /** Why old bytes are still in files, and how to remove them; empty if there are none. */
  pending?: string;
}

/** An event to append: its kind, its body, and the writer's fields of its header. */
export type EventIn = {
  kind: "action.requested";
  body: ActionRequested;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.approved";
  body: ActionApproved;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.denied";
  body: ActionDenied;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.started";
  body: ActionStarted;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.succeeded";
  body: ActionSucceeded;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.failed";
  body: ActionFailed;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.timed_out";
  body: ActionTimedOut;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.recorded";
  body: ActionRecorded;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.uncertain";
  body: ActionUncertain;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.reconciled";
  body: ActionReconciled;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.abandoned";
  body: ActionAbandoned;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "action.evidence";
  body: ActionEvidence;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "input.requested";
  body: InputRequested;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "input.answered";
  body: InputAnswered;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "history.compacted";
  body: HistoryCompacted;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "history.expanded";
  body: HistoryExpanded;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "checkpoint.named";
  body: CheckpointNamed;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "note.added";
  body: NoteAdded;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "gap.noted";
  body: GapNoted;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "git_commit.linked";
  body: GitCommitLinked;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "records.imported";
  body: RecordsImported;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "items.kept";
  body: ItemsKept;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "decision.made";
  body: DecisionMade;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "fact.recorded";
  body: FactRecorded;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "fact.retracted";
  body: FactRetracted;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "dead_end.noted";
  body: DeadEndNoted;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "knowledge.recalled";
  body: KnowledgeRecalled;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "artefact.recorded";
  body: ArtefactRecorded;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "file.changed";
  body: FileChanged;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "resource.touched";
  body: ResourceTouched;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "subagent.spawned";
  body: SubagentSpawned;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "subagent.returned";
  body: SubagentReturned;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "context.evicted";
  body: ContextEvicted;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "context.restored";
  body: ContextRestored;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "state.patched";
  body: StatePatched;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "budget.set";
  body: BudgetSet;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "budget.spent";
  body: BudgetSpent;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "budget.reached";
  body: BudgetReached;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "trust.endorsed";
  body: TrustEndorsed;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "step.invalidated";
  body: StepInvalidated;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "flag.raised";
  body: FlagRaised;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "flag.cleared";
  body: FlagCleared;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "session.opened";
  body?: SessionOpened;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "session.paused";
  body?: SessionPaused;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "session.resumed";
  body?: SessionResumed;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "session.closed";
  body?: SessionClosed;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "session.reopened";
  body?: SessionReopened;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "session.archived";
  body?: SessionArchived;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "lease.taken";
  body: LeaseTaken;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "lease.released";
  body: LeaseReleased;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "goal.set";
  body: GoalSet;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "labels.set";
  body: LabelsSet;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "turn.started";
  body?: TurnStarted;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "turn.ended";
  body?: TurnEnded;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: "message.added";
  body: MessageAdded;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
} | {
  kind: string;
  body?: JsonObject;
  actor?: string;
  cause?: number;
  derived_from?: Array<[number, number]>;
  source?: string;
  trust?: "trusted" | "untrusted" | "unverified";
};

/** One event: header, chain, body and what it changed in the state. */
export interface EventRecord {
  session: string;
  seq: number;
  kind: string;
  at: number;
  turn: number;
  attempt: number;
  actor: string;
  /** The tool, for events of a call; else empty. */
  tool: string;
  cause: number;
  derived_from: Array<[number, number]>;
  source: string;
  trust: string;
  commit_id: string;
  /** The chain's hash after this event. */
  hash: string;
  /** False: the content was erased or pruned. */
  intact: boolean;
  /** What the writer sent. A payload is a reference, `{"$payload": sha256, "size", "media"}`, or its content if the request asked for it. */
  body: JsonObject;
  /** What it changed in the state: RFC 6902. */
  delta: Array<JsonObject>;
}

/** Events, oldest first; pass `next` as `after` to read on. */
export interface EventsPage {
  events: Array<EventRecord>;
  next?: number | null;
  /** Events that cannot be read, and why; only with `even_damaged`. */
  holes?: Array<Hole>;
}

export interface FactRecorded {
  key: string;
  value: Json;
  why?: string;
  occurred_at?: number;
}

export interface FactRetracted {
  key: string;
  why?: string;
  occurred_at?: number;
}

/** A typed error, so that code can check `type` instead of reading the message. */
export interface Failure {
  type: string;
  message?: string;
  retryable?: boolean;
}

/** One fault, and the event where it shows. */
export interface Fault {
  seq: number;
  what: string;
}

/** A file was created, modified or deleted. `before` and `after` are its contents: text as text, anything else as bytes; for a symbolic link, its target. The hashes are SHA-256 of the bytes on disk. The modes are type and permissions as in `st_mode`, in octal: `100644` is a file, `120000` a link. They are empty when there was no file, or when they are not known. `missing` says why the content of a side is not here, or not completely: `{"after": "too large"}`. Redacted content is `redacted` there, and has no hash. `folder` is the folder that a relative path starts from, on the machine that captured it. */
export interface FileChanged {
  path: string;
  change?: "created" | "deleted" | "modified";
  added?: number;
  removed?: number;
  before?: Json;
  after?: Json;
  action?: string;
  before_hash?: string;
  after_hash?: string;
  before_mode?: string;
  after_mode?: string;
  missing?: Record<string, string>;
  folder?: string;
  why?: string;
  occurred_at?: number;
}

export interface FlagCleared {
  flag: string;
  why?: string;
  occurred_at?: number;
}

export interface FlagRaised {
  flag: string;
  rule?: string;
  message?: string;
  severity?: "alarm" | "error" | "info" | "warning";
  targets?: Array<number>;
  count?: number;
  why?: string;
  occurred_at?: number;
}

/** Where to fork (a selector; by default now), and the new session's name. */
export interface Fork {
  at?: string;
  name?: string;
  why?: string;
}

/** Where a fork leaves its parent. */
export interface ForkPoint {
  parent: string;
  at: number;
  hash: string;
}

/** Something is known to be missing from the record. */
export interface GapNoted {
  missed: string;
  source?: string;
  why?: string;
  occurred_at?: number;
}

/** A git commit contains work of a turn. `on` is the event that shows it. `known` says how: `recorded` (a call made the commit, and its output names it), `matched` (the commit has a file exactly as the turn left it), `derived` (it was made during the turn, and contains a file that the turn had changed). */
export interface GitCommitLinked {
  commit: string;
  turn: number;
  on?: number;
  known?: "derived" | "matched" | "recorded";
  subject?: string;
  repo?: string;
  why?: string;
  occurred_at?: number;
}

export interface GoalSet {
  goal: string | null;
  why?: string;
  occurred_at?: number;
}

/** A session's position and status after a commit. */
export interface Head {
  session: string;
  seq: number;
  hash: string;
  at: number;
  epoch: number;
  status: string;
  turn: number;
  commit_id: string;
  fork?: ForkPoint | null;
  name?: string;
}

/** A session's head. */
export interface HeadAnswer {
  session: string;
  name: string;
  seq: number;
  hash: string;
  at: number;
  epoch: number;
  status: string;
  turn: number;
  commit_id: string;
  parent?: Parent | null;
}

/** A summary replaces a range of messages in the view; the log keeps them. */
export interface HistoryCompacted {
  first: number;
  last: number;
  summary: Json;
  why?: string;
  occurred_at?: number;
}

/** A compaction is reverted: the messages it replaced are in view again. */
export interface HistoryExpanded {
  compacted: number;
  why?: string;
  occurred_at?: number;
}

/** Events that cannot be read, and why. `session` holds them; for a fork that may be its parent. */
export interface Hole {
  session: string;
  first: number;
  last: number;
  why: string;
}

/** The session that a bundle was imported to, and its head. */
export interface Imported {
  session: string;
  name: string;
  head: Head;
}

/** About the server: its version, and how durable an acknowledged append is. */
export interface Info {
  version: string;
  durability: string;
  namespace: string;
  scopes: Array<string>;
  /** Whether this server removes secrets from appended events, and refuses commits that contain any. */
  redacts: boolean;
}

export interface InputAnswered {
  request: string;
  answer: Json;
  by?: string;
  why?: string;
  occurred_at?: number;
}

export interface InputRequested {
  request: string;
  prompt: string;
  options?: Array<string>;
  why?: string;
  occurred_at?: number;
}

/** Names the items of a framework's own history from which the following events of this commit were made, and the number of events of each (`counts`). `rest` is a text with one line of JSON for each item. In it, `{"$in": [n, field, …]}` stands for the value at that place of event n, counted from the item's first event, and `"as"` says that it is the value as JSON text (`json`: compact, `json-spaced`: with a space after each `,` and `:`). So an item is stored once and can be restored exactly, and what is erased from an event is gone from its item. If an object has a key `$in` itself, it is written as `{"$in": {"is": …}}`. Adapters that assemble their objects themselves (`adk`, `agent-framework-checkpoint`, `crewai-checkpoint`, `crewai-feedback`) write this event after the events it is about, and `rest` is one JSON object of their own. */
export interface ItemsKept {
  format: string;
  counts?: Array<number>;
  rest?: Json;
  /** The framework's own ids of the items, if it has any. */
  ids?: Array<string>;
  why?: string;
  occurred_at?: number;
}

/** Lines of earlier sessions were shown to this one. `sources` are their events, each as `session@seq`, and `lines` their kinds (`recipe`, `fact` …). Their text is not repeated here, so that it can be erased at its source. */
export interface KnowledgeRecalled {
  sources: Array<string>;
  lines?: Array<string>;
  occasion?: "asked" | "error" | "start";
  why?: string;
  occurred_at?: number;
}

/** Labels to set; a value of None removes one. `before` holds earlier values that no label had recorded. */
export interface LabelsSet {
  labels: Record<string, string | null>;
  before?: Record<string, string>;
  why?: string;
  occurred_at?: number;
}

/** The epoch to pass as `guard`. */
export interface LeaseAnswer {
  epoch: number;
}

export interface LeaseReleased {
  epoch: number;
  why?: string;
  occurred_at?: number;
}

/** A writer claimed the session. From now on, commits with an older epoch are refused. */
export interface LeaseTaken {
  epoch: number;
  holder: string;
  ttl_us?: number;
  why?: string;
  occurred_at?: number;
}

/** What may be spent: `usd` as text ("1.00"), tokens, seconds. Null removes a limit; limits that are left out stay. */
export interface Limits {
  usd?: string | number | null;
  tokens?: number | null;
  seconds?: number | null;
}

/** One message as it was added. */
export interface Message {
  seq: number;
  turn: number;
  role: string;
  content: Json;
  name?: string;
  action?: string;
  trust?: string;
}

/** One message of the conversation. Messages are read from the log; the state does not hold them. */
export interface MessageAdded {
  role: string;
  content: Json;
  name?: string;
  /** For a tool's answer: the action that it answers. */
  action?: string;
  why?: string;
  occurred_at?: number;
}

export interface MessagesAnswer {
  messages: Array<Message>;
}

/** A session to open by name. Everything but the name is used only when the session is created. */
export interface NewSession {
  name: string;
  goal?: string | null;
  agent?: string;
  labels?: Record<string, string>;
  limits?: Limits | null;
  data?: JsonObject;
  spawner?: string;
}

/** A person's or a tool's note on an earlier event (0: on the session). */
export interface NoteAdded {
  text: string;
  on?: number;
  why?: string;
  occurred_at?: number;
}

/** Some rows of an answer; pass `next` as `after` to go on. Empty: these were the last. */
export interface PageSessionInfo {
  rows: Array<SessionInfo>;
  as_of: AsOf;
  next?: string;
}

/** Where a fork leaves its parent. */
export interface Parent {
  session: string;
  at: number;
}

/** A change of `data`: RFC 6902, with paths below /data. `expect` is the event that it is based on. */
export interface Patch {
  patch: Array<JsonObject>;
  why?: string;
  expect?: number | null;
}

/** An error: what happened, to what, and what to do. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  kind: string;
  group: string;
  hint?: string;
  /** Whether the same request may succeed later. */
  retryable?: boolean;
  /** For a conflict: where the session is now. */
  head_seq?: number;
  /** For an event that is not allowed: the kinds that are. */
  legal?: Array<string>;
  /** For a damaged log: the first bad event. */
  seq?: number;
}

export interface Reason {
  why?: string;
}

/** The event that was appended. */
export interface Recorded {
  seq: number;
}

/** Names the records of another program's transcript from which the preceding events of this commit were made: the id of each, and its number of events. `rest` is a text with one line of JSON for each record: what the events do not hold of it, unchanged. Fields that every record repeats may be under `common`, which is `"same"` if they equal those of the last record that has them. A record whose events the log refused has `refused`, `record` and `events` instead. `size` and `changed` are those of the file when it was read. `steps` names what was imported from records that the program rewrites as they grow, so that it is not imported twice. */
export interface RecordsImported {
  format: string;
  source?: string;
  ids?: Array<string>;
  counts?: Array<number>;
  rest?: Json;
  size?: number;
  changed?: number;
  steps?: Array<string>;
  why?: string;
  occurred_at?: number;
}

export interface ReleaseLease {
  epoch: number;
}

/** An app, data source or URL the agent used. */
export interface ResourceTouched {
  resource: string;
  category?: "app" | "data_source" | "file";
  mode?: "read" | "write";
  why?: string;
  occurred_at?: number;
}

export interface Resume {
  host?: string;
  why?: string;
}

/** Where to go back to: a selector. */
export interface Rewind {
  to: string;
  why?: string;
}

/** A session as it is now. */
export interface SessionAnswer {
  head: HeadAnswer;
  /** The holder of a lease that has not expired; empty if there is none. */
  holder: string;
  goal: Json;
  labels: JsonObject;
  turn: JsonObject;
  view: JsonObject;
  pending_actions: JsonObject;
  flags: JsonObject;
  budget: JsonObject;
  last_error: JsonObject | null;
}

export interface SessionArchived {
  why?: string;
  occurred_at?: number;
}

export interface SessionClosed {
  outcome?: string;
  why?: string;
  occurred_at?: number;
}

/** A session at a glance. Counts and amounts are its own, without what a fork shares with its parent. */
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
  about?: string;
}

/** Event 1. Its delta is the whole initial state. */
export interface SessionOpened {
  name?: string;
  goal?: string | null;
  labels?: Record<string, string>;
  agent?: string;
  limits?: Record<string, number>;
  data?: JsonObject;
  data_schema?: string;
  /** For a sub-agent: `session@seq` of the event that spawned it. */
  spawner?: string;
  why?: string;
  occurred_at?: number;
}

export interface SessionPaused {
  why?: string;
  occurred_at?: number;
}

export interface SessionReopened {
  why?: string;
  occurred_at?: number;
}

export interface SessionResumed {
  host?: string;
  why?: string;
  occurred_at?: number;
}

/** The state, or a part of it, after an event. */
export interface StateAnswer {
  session: string;
  at: number;
  state_hash: string;
  value: Json;
}

/** The session's own data changed. The patch, with paths below /data, is stored as the delta. */
export interface StatePatched {
  delta: Array<JsonObject>;
  why?: string;
  occurred_at?: number;
}

export interface StepInvalidated {
  targets: Array<number>;
  by?: string;
  why?: string;
  occurred_at?: number;
}

export interface SubagentReturned {
  session: string;
  outcome?: string;
  output?: Json;
  cost?: Cost;
  why?: string;
  occurred_at?: number;
}

export interface SubagentSpawned {
  session: string;
  task?: string;
  why?: string;
  occurred_at?: number;
}

/** Who claims the session, and after how many seconds without a heartbeat the lease expires. With `force`, also from a living holder. */
export interface TakeLease {
  holder: string;
  ttl_s?: number;
  force?: boolean;
}

export interface TrustEndorsed {
  targets: Array<number>;
  by?: string;
  why?: string;
  occurred_at?: number;
}

export interface TurnEnded {
  outcome?: "completed" | "failed" | "interrupted";
  error?: Failure | null;
  /** The turn's result. */
  output?: Json;
  why?: string;
  occurred_at?: number;
}

/** A new turn started; with `retry`, the next attempt of the same turn. */
export interface TurnStarted {
  input?: Json;
  retry?: boolean;
  /** The first of the interrupted attempts that this one continues; their calls are not made again. 0 means a fresh start. */
  resumes?: number;
  /** The caller's id for the turn. A completed turn with that id is not done again. */
  id?: string;
  /** The process that owns the turn while it is open (see holders of turns in the format). */
  holder?: string;
  why?: string;
  occurred_at?: number;
}

/** The operation that was undone, and the session's head. */
export interface UndoAnswer {
  operation: number;
  head: HeadAnswer;
}

/** The result of a verification. `ok` means no fault; `scope` says what that does not cover. */
export interface VerifyReport {
  session: string;
  events: number;
  head_hash: string;
  integrity: Array<Fault>;
  completeness: Array<Fault>;
  scope: Record<string, number>;
  /** Whether the log was compared with an anchor. Without one, a cut-off end cannot be detected. */
  anchored: boolean;
  /** How many removed bodies are named only by events of an ancestor after the fork point. No anchor of this session covers those: verify the ancestor with an anchor of its own. */
  uncovered?: number;
}
