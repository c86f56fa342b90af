// What an event says that only keeps books, in a few words: the thing first, then why.
import type { EventRecord, Json, JsonObject } from "./api";
import { inputLine, isObject } from "./content";
import { brief, count, many } from "./text";

export interface Saying {
  text: string;
  why: string;
}

const SIGNS: Record<string, string> = { add: "+", remove: "−", replace: "~", move: "→", copy: "⧉", test: "=" };

/** A patch in a line: "+ /plan/2, ~ /risk". */
export function patchLine(patch: JsonObject[]): string {
  return patch.map((op) => `${SIGNS[String(op.op)] ?? String(op.op)} ${String(op.path ?? "")}`).join(", ");
}

function pairs(value: Json | undefined): string {
  if (!isObject(value)) return inputLine(value);
  return Object.entries(value).map(([name, each]) => (each === null ? `${name} removed` : `${name}: ${inputLine(each)}`)).join(", ");
}

export function sayingOf(event: EventRecord): Saying {
  const { body, kind } = event;
  const told = (text: string, why: Json | undefined = body.why): Saying => ({ text: text.trim(), why: typeof why === "string" ? why : "" });
  const of = (name: string) => inputLine(body[name]);
  switch (kind) {
    case "session.opened":
      return told([of("goal"), body.agent ? `by ${of("agent")}` : ""].filter(Boolean).join(" · "));
    case "session.forked":
      return told(`from ${of("parent")} at e${of("at")}`);
    case "session.resumed":
      return told(body.host ? `on ${of("host")}` : "");
    case "session.closed":
    case "turn.ended":
      return told(body.outcome === undefined || body.outcome === "completed" ? "" : of("outcome"), isObject(body.error) ? body.error.message : body.why);
    case "state.patched":
      return told(patchLine(event.delta));
    case "fact.recorded":
      return told(`${of("key")} = ${of("value")}`);
    case "fact.retracted":
    case "context.restored":
      return told(of("key"));
    case "labels.set":
      return told(pairs(body.labels));
    case "goal.set":
      return told(of("goal"));
    case "artefact.recorded":
      return told([of("name"), of("uri")].filter(Boolean).join(" · "));
    case "file.changed":
      return told(`${of("path")}  ${body.change === "deleted" ? "deleted" : `+${of("added") || 0} −${of("removed") || 0}`}`);
    case "resource.touched":
      return told(`${body.mode === "write" ? "wrote" : "read"} ${of("resource")}`);
    case "context.evicted":
      return told(`${of("key")}${Number(body.tokens) ? ` · ${brief(Number(body.tokens))} tokens` : ""}`);
    case "history.compacted":
      return told(`e${of("first")} to e${of("last")}: ${of("summary")}`);
    case "history.rewound":
      return told(`${body.mode && body.mode !== "rewind" ? `${of("mode")}, ` : ""}back to e${of("to")}`);
    case "checkpoint.named":
      return told(`${of("name")} at e${of("at")}${body.remove ? ", removed" : ""}`);
    case "action.reconciled":
      return told([of("outcome"), of("output") || of("output_summary")].filter(Boolean).join(" · "));
    case "action.denied":
    case "action.approved":
      return told([event.tool, body.by ? `by ${of("by")}` : ""].filter(Boolean).join(" "));
    case "action.uncertain":
    case "action.abandoned":
      return told(event.tool, isObject(body.error) ? body.error.message : body.why);
    case "input.answered":
      return told(`${of("answer")}${body.by ? ` · ${of("by")}` : ""}`);
    case "subagent.spawned":
      return told([of("task"), of("session")].filter(Boolean).join(" · "));
    case "subagent.returned":
      return told([of("outcome"), of("output")].filter(Boolean).join(" · "));
    case "records.imported":
      return told([of("format"), Array.isArray(body.ids) ? many(body.ids.length, "record") : "", of("source")].filter(Boolean).join(" · "));
    case "git_commit.linked":
      return told(`${of("commit").slice(0, 10)} ${of("subject")}`);
    case "budget.set":
      return told(pairs(body.limits));
    case "budget.reached":
      return told(of("limit"));
    case "lease.taken":
      return told(`by ${of("holder")}`);
    case "gap.noted":
      return told([of("missed"), of("source")].filter(Boolean).join(" · "));
    case "flag.cleared":
      return told(of("flag"));
    case "trust.endorsed":
    case "step.invalidated":
      return told(Array.isArray(body.targets) ? body.targets.map((seq) => `e${count(Number(seq))}`).join(", ") : "");
    default:
      return told(pairs(Object.fromEntries(Object.entries(body).filter(([name]) => !["occurred_at", "action", "id", "why"].includes(name)))));
  }
}

/** A row of the index without what it repeats: the name before it is not said again. */
export function summaryOf(row: { kind: string; summary: string }, name: string): string {
  if (row.kind === "state.patched") {
    const ops = [...row.summary.matchAll(/op: (\w+) path: (\S+)/g)];
    if (ops.length) return patchLine(ops.map(([, op, path]) => ({ op: op!, path: path! })));
  }
  let text = row.summary;
  while (name && text.startsWith(name) && (text.length === name.length || text[name.length] === " ")) text = text.slice(name.length).trimStart();
  return text;
}
