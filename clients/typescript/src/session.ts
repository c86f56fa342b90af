// One session, over HTTP. Each verb is one operation of the protocol (docs/reference/protocol.md) with its words.

import type { Json, JsonObject } from "./json.ts";
import type {
  AgainstAnchor,
  Anchor,
  Append,
  EraseAnswer,
  EventIn,
  EventRecord,
  EventsPage,
  HeadAnswer,
  LeaseAnswer,
  Message,
  MessagesAnswer,
  Recorded,
  SessionAnswer,
  StateAnswer,
  UndoAnswer,
  VerifyReport,
} from "./protocol.ts";
import type { TailItem, TailOptions } from "./tail.ts";
import { tail } from "./tail.ts";
import type { Transport } from "./transport.ts";

export interface AppendOptions {
  /** The head that this append is based on: if another writer came first, it is refused with `head-moved`. */
  expect?: number;
  /** Any text that is used once in this session. By default a new one: an append that is sent again is stored once. */
  commitId?: string;
  /** The epoch of a lease. */
  guard?: number;
}

export interface EventFilter {
  place?: string;
  after?: number;
  upto?: number;
  turn?: number;
  attempt?: number;
  since?: number;
  until?: number;
  kind?: string;
  tool?: string;
  /** Values of up to so many bytes come in full, larger ones as references. */
  payloads?: number;
}

export class Session {
  /** The name or id that it was asked for by. */
  readonly name: string;
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, name: string) {
    this.#transport = transport;
    this.name = name;
    this.#path = `/v1/sessions/${encodeURIComponent(name)}`;
  }

  /** Head, goal, labels, turn, pending calls, flags and budget. */
  summary(): Promise<SessionAnswer> {
    return this.#get("");
  }

  head(): Promise<HeadAnswer> {
    return this.#get("/head");
  }

  /**
   * Stores events as one durable commit, and gives the head after it. A lost answer, a timeout or a busy server is asked
   * again with the same commit id, so that the commit is stored once.
   */
  append(events: EventIn | EventIn[], options: AppendOptions = {}): Promise<HeadAnswer> {
    const body: Append = {
      events: Array.isArray(events) ? events : [events],
      expect: options.expect ?? null,
      commit_id: options.commitId ?? crypto.randomUUID(),
      guard: options.guard ?? null,
    };
    return this.#post("/events", body, true);
  }

  /** Events in order, page by page as you read on. */
  async *events(filter: EventFilter = {}): AsyncGenerator<EventRecord> {
    let { after } = filter;
    for (;;) {
      const page = await this.#get<EventsPage>("/events", { ...filter, after });
      yield* page.events;
      if (page.next === null || page.next === undefined) return;
      after = page.next;
    }
  }

  /** One event, by a selector: "e12", "last-error", "@5" for the last of a turn. */
  event(place: string, payloads?: number): Promise<EventRecord> {
    return this.#get(`/events/${encodeURIComponent(place)}`, { payloads });
  }

  /** The state now, or at a point such as "e12", "@5" or "cp:before"; all of it, or what a JSON pointer names. */
  state(at?: string, pointer?: string): Promise<StateAnswer> {
    return this.#get("/state", { at, pointer });
  }

  /** What changed between two points, each change with its event, tool and reason; "@2" alone: in that turn. */
  diff(a?: string, b?: string): Promise<JsonObject> {
    return this.#get("/diff", { a, b });
  }

  /** The messages in view, oldest first: all, or the last `limit`; `before` is the `seq` of the page after. */
  async messages(at?: string, page: { limit?: number; before?: number } = {}): Promise<Message[]> {
    return (await this.#get<MessagesAnswer>("/messages", { at, ...page })).messages;
  }

  /** Live events of this session. */
  tail(options: TailOptions = {}): AsyncGenerator<TailItem> {
    return tail(this.#transport, `${this.#path}/tail`, options);
  }

  /** Goes back to an earlier point, by an event; nothing is removed, and `undo` reverts it. */
  rewind(to: string, why = ""): Promise<HeadAnswer> {
    return this.#post("/rewind", { to, why });
  }

  undo(): Promise<UndoAnswer> {
    return this.#post("/undo");
  }

  /** A new session that shares the history up to a point; by default up to now. */
  async fork(options: { at?: string; name?: string; why?: string } = {}): Promise<Session> {
    const head = await this.#post<HeadAnswer>("/fork", options);
    return new Session(this.#transport, head.session);
  }

  checkpoint(name: string, at = ""): Promise<Recorded> {
    return this.#post("/checkpoint", { name, at });
  }

  /** Changes the session's own data: RFC 6902, with paths below /data. */
  patch(patch: JsonObject[], options: { why?: string; expect?: number } = {}): Promise<Recorded> {
    return this.#post("/patch", { patch, ...options });
  }

  pause(why = ""): Promise<HeadAnswer> {
    return this.#post("/pause", { why });
  }

  resume(why = ""): Promise<HeadAnswer> {
    return this.#post("/resume", { why });
  }

  close(outcome = "completed", why = ""): Promise<HeadAnswer> {
    return this.#post("/close", { outcome, why });
  }

  reopen(why = ""): Promise<HeadAnswer> {
    return this.#post("/reopen", { why });
  }

  archive(why = ""): Promise<HeadAnswer> {
    return this.#post("/archive", { why });
  }

  /** Claims the session for one writer; pass the epoch as `guard` when you append. */
  async takeLease(holder: string, options: { ttlS?: number; force?: boolean } = {}): Promise<number> {
    const body = { holder, ttl_s: options.ttlS ?? 30, force: options.force ?? false };
    return (await this.#post<LeaseAnswer>("/lease", body)).epoch;
  }

  /** Tells that the holder is alive. */
  async beatLease(epoch: number, holder: string, ttlS = 30): Promise<void> {
    await this.#post("/lease/beat", { epoch, holder, ttl_s: ttlS }, true);
  }

  releaseLease(epoch: number): Promise<HeadAnswer> {
    return this.#post("/lease/release", { epoch });
  }

  /** The head, to be kept elsewhere: a later `verify` is held against it. */
  anchor(): Promise<Anchor> {
    return this.#get("/anchor");
  }

  /** Checks every byte on the server; with an anchor, also that nothing was cut off or rewritten. */
  verify(anchor?: Anchor): Promise<VerifyReport> {
    if (anchor === undefined) return this.#get("/verify");
    const { seq, hash, at } = anchor;
    return this.#post("/verify", { seq, hash, at } satisfies AgainstAnchor, true);
  }

  /**
   * The session and its ancestry in a portable form; `readBundle` checks it here, without trust in the server. Of an
   * encrypted store it may stay `encrypted`, which needs no key.
   */
  async bundle({ encrypted }: { encrypted?: boolean } = {}): Promise<Uint8Array> {
    const response = await this.#transport.send(`${this.#path}/bundle`, { query: { encrypted } });
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Erases the content of events permanently, here and in forks that share them. */
  erase(events: number[], why = ""): Promise<EraseAnswer> {
    return this.#post("/erase", { events, why });
  }

  /** Deletes the session permanently; a tombstone stays. */
  async delete(why = ""): Promise<void> {
    await this.#transport.send(this.#path, { method: "DELETE", query: { why: why || undefined } });
  }

  #get<T>(path: string, query: object = {}): Promise<T> {
    return this.#transport.json<T>(this.#path + path, { query });
  }

  #post<T>(path: string, body?: object, isRepeatable = false): Promise<T> {
    return this.#transport.json<T>(this.#path + path, { method: "POST", body: body as Json, isRepeatable });
  }
}
