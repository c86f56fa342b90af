// The events of one session, as much of them as is looked at. Positions are dense, so a row of the list is an event
// number, and any page can be asked for without those before it. Pages not looked at for long are forgotten.
import { api, type EventInfo, type EventRecord, type TurnInfo } from "./api";

export class Pages<T extends { seq: number }> {
  #pages = new Map<number, Map<number, T>>();
  #loading = new Map<number, AbortController>();
  #version = $state(0);
  trouble: unknown = $state(null);

  constructor(
    readonly size: number,
    readonly most: number,
    readonly load: (after: number, limit: number, signal: AbortSignal) => Promise<T[]>,
  ) {}

  get(seq: number): T | undefined {
    void this.#version;
    return this.#pages.get(this.#page(seq))?.get(seq);
  }

  /** Sees to it that these positions are there, or on their way; pages that nobody waits for any more are not. */
  need(first: number, last: number): void {
    const from = this.#page(Math.max(1, first));
    const to = this.#page(Math.max(1, last));
    for (const [page, loading] of this.#loading) {
      if (page < from - 1 || page > to + 1) {
        loading.abort();
        this.#loading.delete(page);
      }
    }
    for (let page = from; page <= to; page++) if (!this.#touch(page)) void this.#fetch(page);
  }

  async one(seq: number): Promise<T | undefined> {
    const page = this.#page(seq);
    if (!this.#pages.get(page)?.has(seq)) await this.#fetch(page);
    return this.#pages.get(page)?.get(seq);
  }

  /** Forgets what may have changed: the page of a position, and all after it. */
  forgetFrom(seq: number): void {
    const from = this.#page(Math.max(1, seq));
    for (const page of [...this.#pages.keys()]) if (page >= from) this.#stale.add(page);
  }

  #stale = new Set<number>();

  #page(seq: number): number {
    return Math.floor((seq - 1) / this.size);
  }

  #touch(page: number): boolean {
    const found = this.#pages.get(page);
    if (!found) return this.#loading.has(page);
    this.#pages.delete(page);
    this.#pages.set(page, found);
    return !this.#stale.has(page) || this.#loading.has(page);
  }

  async #fetch(page: number): Promise<void> {
    const control = new AbortController();
    this.#loading.set(page, control);
    this.#stale.delete(page);
    try {
      const rows = await this.load(page * this.size, this.size, control.signal);
      const upto = (page + 1) * this.size;
      this.#pages.set(page, new Map(rows.filter((row) => row.seq <= upto).map((row) => [row.seq, row])));
      while (this.#pages.size > this.most) this.#pages.delete(this.#pages.keys().next().value!);
      this.trouble = null;
      this.#version++;
    } catch (error) {
      if (!control.signal.aborted) this.trouble = error;
    } finally {
      if (this.#loading.get(page) === control) this.#loading.delete(page);
    }
  }
}

/** Events of a session, a line each. */
export function rowPages(session: string): Pages<EventInfo> {
  return new Pages(200, 25, async (after, limit, signal) => {
    const page = await api.rows({ session, after, limit, rewound: true }, signal);
    return page.rows;
  });
}

export const INLINE_MAX = 8192;

/** Events of a session in full; payloads that are longer than a screen stay where they are. */
export function recordPages(session: string): Pages<EventRecord> {
  return new Pages(50, 12, async (after, limit, signal) => {
    const page = await api.events(session, { after, limit, payloads: INLINE_MAX }, signal);
    return page.events;
  });
}

/** The turns of a session by number; each with its attempts. */
export class Turns {
  #turns = new Map<number, TurnInfo[]>();
  #loaded = new Set<number>();
  #loading = new Set<number>();
  #version = $state(0);
  trouble: unknown = $state(null);
  static readonly SIZE = 100;

  constructor(readonly session: string) {}

  get(turn: number): TurnInfo[] | undefined {
    void this.#version;
    return this.#turns.get(turn);
  }

  need(first: number, last: number): void {
    for (let page = this.#page(first); page <= this.#page(last); page++)
      if (!this.#loaded.has(page) && !this.#loading.has(page)) void this.#fetch(page);
  }

  async one(turn: number): Promise<TurnInfo[] | undefined> {
    if (!this.#turns.has(turn)) await this.#fetch(this.#page(turn));
    return this.#turns.get(turn);
  }

  forgetFrom(turn: number): void {
    for (const page of [...this.#loaded]) if (page >= this.#page(turn)) this.#loaded.delete(page);
  }

  #page(turn: number): number {
    return Math.floor(Math.max(0, turn - 1) / Turns.SIZE);
  }

  async #fetch(page: number): Promise<void> {
    this.#loading.add(page);
    const last = (page + 1) * Turns.SIZE;
    const found = new Map<number, TurnInfo[]>();
    let after = page ? `${page * Turns.SIZE}.${Number.MAX_SAFE_INTEGER}` : "";
    try {
      for (;;) {
        const got = await api.turns(this.session, { newest_first: false, rewound: true, limit: 200, after });
        for (const row of got.rows) if (row.turn <= last) found.set(row.turn, [...(found.get(row.turn) ?? []), row]);
        after = got.next;
        if (!after || (got.rows.at(-1)?.turn ?? Infinity) > last) break;
      }
      for (const [turn, attempts] of found) this.#turns.set(turn, attempts);
      this.#loaded.add(page);
      this.trouble = null;
      this.#version++;
    } catch (error) {
      this.trouble = error;
    } finally {
      this.#loading.delete(page);
    }
  }
}
