// The events of a session that are of some kinds, in order; more of them are fetched as they are looked at.
import { api, get, type EventInfo } from "./api";

export interface EventFilter {
  name: string;
  kinds: string[];
}

export const EVENT_FILTERS: EventFilter[] = [
  { name: "conversation", kinds: ["turn.started", "message", "input", "note"] },
  { name: "calls", kinds: ["action"] },
  { name: "errors", kinds: [] },
  { name: "state", kinds: ["state", "fact", "decision", "goal", "labels", "dead_end", "artefact"] },
  { name: "files", kinds: ["file", "resource"] },
  { name: "control", kinds: ["session", "lease", "history", "checkpoint", "flag", "budget", "trust", "step", "context", "payload", "range", "gap", "records"] },
];

export class FilteredRows {
  seqs: number[] = $state.raw([]);
  isWhole = $state(false);
  trouble: unknown = $state(null);
  #isLoading = false;

  constructor(
    readonly session: string,
    readonly filter: EventFilter,
  ) {}

  async more(): Promise<void> {
    if (this.#isLoading || this.isWhole) return;
    this.#isLoading = true;
    try {
      if (this.filter.name === "errors") {
        const page = await get<{ rows: { seq: number }[] }>("/errors", { session: this.session, rewound: true, limit: 1000 });
        this.seqs = page.rows.map((row) => row.seq).sort((a, b) => a - b);
        this.isWhole = true;
      } else {
        const page = await api.rows({ session: this.session, kinds: this.filter.kinds, rewound: true, after: this.seqs.at(-1) ?? 0, limit: 500 });
        this.seqs = [...this.seqs, ...page.rows.map((row: EventInfo) => row.seq)];
        this.isWhole = !page.next;
      }
    } catch (error) {
      this.trouble = error;
      this.isWhole = true;
    } finally {
      this.#isLoading = false;
    }
  }

  /** The place of a position in the list, or of the next one after it. */
  indexOf(seq: number): number {
    let low = 0;
    let high = this.seqs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.seqs[middle]! < seq) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, this.seqs.length - 1);
  }
}
