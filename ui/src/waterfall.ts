// The bars of a waterfall, and the scale they stand on. A call is one bar, from its request to its outcome; anything
// else that is said is a moment. Time is told in shares of the whole, with long silences cut out.
import type { EventInfo, TurnInfo } from "./api";
import { sortOf } from "./content";
import { summaryOf } from "./wording";

export interface Bar {
  seq: number;
  sign: string;
  role: string;
  name: string;
  what: string;
  from: number;
  upto: number;
  /** Of a turn: opens it. */
  turn?: TurnInfo;
}

export interface Scale {
  /** Where a time stands, 0 to 1. */
  at: (time: number) => number;
  /** The time at a place: the reverse. */
  timeAt: (share: number) => number;
  gaps: { from: number; upto: number }[];
  start: number;
  end: number;
}

/** A part of the scale, as shares of the whole. */
export interface Span {
  from: number;
  upto: number;
}

export const WHOLE: Span = { from: 0, upto: 1 };
const LEAST = 0.0005;

export function barOfTurn(each: TurnInfo): Bar {
  const [sign, role] = each.ended_at === null ? ["◐", "user"] : each.outcome === "failed" ? ["✗", "error"] : each.outcome === "interrupted" ? ["◌", "waiting"] : ["●", "ok"];
  return {
    seq: each.first,
    sign: sign!,
    role: role!,
    name: `@${each.turn}${each.attempts > 1 ? `.${each.attempt}` : ""}`,
    what: each.input,
    from: each.started_at,
    upto: each.ended_at ?? each.started_at,
    turn: each,
  };
}

export function barsOf(rows: EventInfo[], of: TurnInfo): Bar[] {
  const asked = new Map<string, EventInfo>();
  const bars: Bar[] = [];
  const put = (row: EventInfo, from: number, upto: number, summary = row.summary, tool = row.tool) => {
    const sort = sortOf(row);
    const name = tool || sort.word;
    bars.push({ seq: row.seq, sign: sort.sign, role: sort.role, name, what: summaryOf({ kind: row.kind, summary }, name), from, upto });
  };
  for (const row of rows) {
    if (row.kind === "action.requested") asked.set(row.action, row);
    else if (row.kind === "action.started") continue;
    else if (row.kind.startsWith("action.")) {
      const from = asked.get(row.action);
      asked.delete(row.action);
      const start = row.duration_us ? row.occurred_at - row.duration_us : (from?.occurred_at ?? row.occurred_at);
      put(row, Math.min(start, from?.occurred_at ?? start), row.occurred_at, from?.summary || row.summary, row.tool || from?.tool);
    } else if (/^(message|turn\.started|input|history|flag|decision)/.test(row.kind)) put(row, row.occurred_at, row.occurred_at);
  }
  for (const row of asked.values()) put(row, row.occurred_at, of.ended_at ?? Date.now() * 1000);
  return bars.sort((a, b) => a.from - b.from || a.seq - b.seq);
}

/** Time with silences cut out: where nothing ran for three times the usual gap, the axis is folded. */
export function scaleOf(bars: Bar[]): Scale {
  const silences: { from: number; upto: number }[] = [];
  let busy = -Infinity;
  for (const bar of bars) {
    if (busy > -Infinity && bar.from > busy) silences.push({ from: busy, upto: bar.from });
    busy = Math.max(busy, bar.upto);
  }
  const lengths = silences.map((each) => each.upto - each.from).sort((a, b) => a - b);
  const usual = lengths[Math.floor(lengths.length / 2)] ?? 0;
  const gaps = silences.filter((each) => each.upto - each.from > Math.max(usual * 3, 5_000_000));
  const start = bars[0]?.from ?? 0;
  const end = busy > -Infinity ? busy : 1;
  const cut = (time: number) => gaps.reduce((sum, gap) => sum + Math.max(0, Math.min(time, gap.upto) - gap.from), 0);
  const length = Math.max(1, end - start - cut(end));
  const timeAt = (share: number) => {
    let time = start + share * length;
    for (const gap of gaps) if (time > gap.from) time += gap.upto - gap.from;
    return time;
  };
  return { at: (time) => (time - start - cut(time)) / length, timeAt, gaps, start, end };
}

/** Nearer (below 1) or farther (above), around a place of the span. */
export function zoomed(span: Span, by: number, around = 0.5): Span {
  const length = Math.min(1, Math.max(LEAST, (span.upto - span.from) * by));
  const middle = span.from + (span.upto - span.from) * around;
  return moved({ from: middle - length * around, upto: middle + length * (1 - around) }, 0);
}

/** Along the scale, by a share of what is seen; never over its ends. */
export function moved(span: Span, by: number): Span {
  const length = span.upto - span.from;
  const from = Math.min(1 - length, Math.max(0, span.from + by * length));
  return { from, upto: from + length };
}

/** From one place to another, whichever way they were drawn; too little to be meant is everything. */
export function between(a: number, b: number): Span {
  const [from, upto] = [Math.max(0, Math.min(a, b)), Math.min(1, Math.max(a, b))];
  return upto - from < LEAST * 4 ? WHOLE : { from, upto };
}
