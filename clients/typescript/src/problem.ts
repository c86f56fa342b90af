// What a server refuses, as an error. Decide by `kind`; if you do not know the kind, by `group`.

import type { Problem } from "./protocol.ts";

export class WakelogError extends Error {
  /** The name of the refusal, such as "head-moved". Kinds are added, never renamed. */
  readonly kind: string;
  /** What to do next, in a word: "conflict", "not-found", "not-allowed", "invalid-input", "unavailable" … */
  readonly group: string;
  readonly status: number;
  readonly hint: string;
  /** Whether the same request may succeed later. */
  readonly isRetryable: boolean;
  /** For a conflict: where the session is now. */
  readonly headSeq: number;
  /** For an event that is not allowed: the kinds that are. */
  readonly legal: readonly string[];

  constructor(problem: Problem, cause?: unknown) {
    super(problem.detail, { cause });
    this.name = "WakelogError";
    this.kind = problem.kind;
    this.group = problem.group;
    this.status = problem.status;
    this.hint = problem.hint ?? "";
    this.isRetryable = problem.retryable ?? false;
    this.headSeq = problem.head_seq ?? 0;
    this.legal = problem.legal ?? [];
  }
}

/** Nothing came back, or nothing that can be understood: it is not known whether the request took effect. */
export function unknownAnswer(detail: string, cause?: unknown): WakelogError {
  const problem = { type: "urn:wakelog:error:answer-unknown", title: "The answer is unknown", status: 0, detail };
  return new WakelogError({ ...problem, kind: "answer-unknown", group: "unavailable", retryable: true }, cause);
}

export async function problemOf(response: Response): Promise<WakelogError> {
  const text = await response.text();
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.kind === "string" && typeof problem.group === "string") return new WakelogError(problem);
  } catch {
    // Not a server of ours speaks: a proxy on the way, most likely.
  }
  const detail = `${response.url} answered ${response.status} and no problem of the protocol: ${text.slice(0, 200)}`;
  if (response.status >= 500) return unknownAnswer(detail);
  const problem = { type: "about:blank", title: response.statusText, status: response.status, detail };
  return new WakelogError({ ...problem, kind: "bad-answer", group: "invalid-input" });
}
