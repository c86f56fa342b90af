// What the rules derive from an agent's words: not recorded, so every line of it is marked with ~.
import { get, seg } from "./api";

export interface InsightItem {
  id: string;
  kind: string;
  turn: number;
  seq: number;
  quote: string;
  reason: string;
  reason_seq: number;
  calls: number[];
  tools: string[];
  checks: string[];
  result: string;
  files: string[];
  open_items: string[];
  /** What happened, beside the quote or where nothing was said. */
  note: string;
  rules: number;
}

export interface Insight {
  items: InsightItem[];
  hidden: number;
  notes: string[];
  rules: number;
}

/** The kinds that are shown beside a change, in this order, and what each is called. Prompts and files have places of their own. */
export const TITLES: Record<string, string> = {
  correction: "correction",
  redirect: "redirected",
  failure_report: "reported",
  preference: "preference",
  answer: "answer",
  approach_change: "change",
  dead_end: "dead end",
  decision: "decision",
  pending: "pending",
};
const ACCEPTED = new Set(["answer", "approach_change", "dead_end", "decision"]);

export function insightOf(session: string, where: string, all: boolean, signal: AbortSignal): Promise<Insight> {
  return get<Insight>(`/sessions/${seg(session)}/insight`, { where, all }, signal);
}

/** What can be recorded as the agent's own. */
export function isAcceptable(item: InsightItem): boolean {
  return ACCEPTED.has(item.kind);
}

/** In the order of the titles; without decisions whose words are a change or a dead end as well. */
export function inOrder(items: InsightItem[]): InsightItem[] {
  const kinds = Object.keys(TITLES);
  const told = new Set(items.filter((item) => item.kind === "approach_change" || item.kind === "dead_end").map((item) => `${item.seq} ${item.quote}`));
  return items
    .filter((item) => item.kind in TITLES && !(item.kind === "decision" && told.has(`${item.seq} ${item.quote}`)))
    .sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
}
