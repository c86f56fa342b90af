// What people can read of a recorded value: messages of any provider come down to blocks.
import type { Json, JsonObject } from "./api";

export interface Block {
  type: "text" | "thinking" | "call" | "result" | "image" | "payload" | "json";
  text: string;
  /** Of a payload that was not sent along. */
  payload?: PayloadRef;
}

export interface PayloadRef {
  hash: string;
  size: number;
  media: string;
  at?: number;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function payloadOf(value: Json | undefined): PayloadRef | null {
  if (!isObject(value) || typeof value.$payload !== "string") return null;
  return {
    hash: value.$payload,
    size: Number(value.size ?? 0),
    media: String(value.media ?? ""),
    at: typeof value.at === "number" ? value.at : undefined,
  };
}

/** A value in blocks, in the order they were said. */
export function blocksOf(value: Json | undefined): Block[] {
  if (value === null || value === undefined || value === "") return [];
  if (typeof value === "string") return [{ type: "text", text: value }];
  const payload = payloadOf(value);
  if (payload) return [{ type: "payload", text: "", payload }];
  if (Array.isArray(value)) {
    if (value.every((part) => typeof part === "string" || (isObject(part) && typeof part.type === "string"))) return value.flatMap(blocksOf);
    return [{ type: "json", text: JSON.stringify(value, null, 2) }];
  }
  if (!isObject(value)) return [{ type: "text", text: String(value) }];
  if ("$erased" in value) return [{ type: "text", text: "(erased)" }];
  const type = typeof value.type === "string" ? value.type : "";
  if (typeof value.thinking === "string") return [{ type: "thinking", text: value.thinking }];
  if (type === "reasoning") return [{ type: "thinking", text: textIn(value.summary) || textIn(value.content) || "(not readable)" }];
  if ((type === "text" || type === "input_text" || type === "output_text") && typeof value.text === "string") return [{ type: "text", text: value.text }];
  if (type === "tool_use" || type === "function_call" || type === "tool_call")
    return [{ type: "call", text: `${String(value.name ?? "call")}` }];
  if (type === "tool_result") return blocksOf(value.content ?? null).map((block) => ({ ...block, type: block.type === "text" ? "result" : block.type }));
  if (type === "image" || type === "image_url" || type === "input_image") return [{ type: "image", text: String((isObject(value.source) && value.source.media_type) || "image") }];
  if (Array.isArray(value.choices)) return value.choices.flatMap((choice) => (isObject(choice) ? blocksOf(choice.message ?? null) : []));
  if (Array.isArray(value.output)) return value.output.flatMap(blocksOf);
  if (Array.isArray(value.candidates)) return value.candidates.flatMap((each) => (isObject(each) ? blocksOf(each.content ?? null) : []));
  if (Array.isArray(value.parts)) return value.parts.flatMap(blocksOf);
  if (("role" in value || type === "message") && "content" in value) {
    const calls = Array.isArray(value.tool_calls) ? value.tool_calls.map((call): Block => ({ type: "call", text: isObject(call) && isObject(call.function) ? String(call.function.name) : "call" })) : [];
    return [...blocksOf(value.content), ...calls];
  }
  if (Object.keys(value).length === 1 && typeof value.text === "string") return [{ type: "text", text: value.text }];
  if (typeof value.$base64 === "string") return [{ type: "image", text: "bytes" }];
  return [{ type: "json", text: JSON.stringify(value, null, 2) }];
}

function textIn(value: Json | undefined): string {
  return blocksOf(value).map((block) => block.text).filter(Boolean).join("\n");
}

/** A call's input on one line. */
export function inputLine(value: Json | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value.replaceAll(/\s+/g, " ");
  const payload = payloadOf(value);
  if (payload) return `${payload.size} bytes`;
  if (!isObject(value)) return JSON.stringify(value);
  if (Array.isArray(value.command) && value.command.every((word) => typeof word === "string")) {
    const words = value.command as string[];
    return (words[1] === "-lc" || words[1] === "-c" ? words.slice(2) : words).join(" ").replaceAll(/\s+/g, " ");
  }
  const first = gistOf((...names) => names.map((name) => value[name]).find((each): each is string => typeof each === "string" && each.trim() !== ""));
  if (first) return first.replaceAll(/\s+/g, " ");
  return Object.entries(value)
    .map(([name, each]) => `${name}: ${typeof each === "string" ? each : JSON.stringify(each)}`)
    .join(", ")
    .replaceAll(/\s+/g, " ");
}

/** Commands of an editor, which mean little without the file. */
const EDITS = new Set(["view", "create", "str_replace", "insert", "undo_edit", "delete"]);

/** What a call is about: what it runs, what it looks for and where, else its file. `argument` finds the first of some names. */
function gistOf(argument: (...names: string[]) => string | undefined): string | undefined {
  const command = argument("command", "cmd");
  const path = argument("file_path", "path");
  if (command) return path && EDITS.has(command) ? `${command} ${path}` : command;
  const sought = argument("pattern", "query", "regex");
  if (sought) return `"${sought}"${path ? ` in ${path}` : ""}`;
  return path ?? argument("url", "sql", "description");
}

/** What sort of event it is: a sign, a role for its colour, and a word. */
export function sortOf(event: { kind: string; effect?: string; outcome?: string; actor?: string }): { sign: string; role: string; word: string } {
  const [head = "", tail = ""] = event.kind.split(".");
  if (event.kind === "turn.started") return { sign: "▶", role: "user", word: "turn" };
  if (event.kind === "turn.ended") return event.outcome === "failed" ? { sign: "✗", role: "error", word: "turn failed" } : { sign: "■", role: "muted", word: "turn ended" };
  if (head === "message") return event.actor === "user" ? { sign: "›", role: "user", word: "message" } : { sign: "‹", role: "model", word: "message" };
  if (head === "action") {
    if (["failed", "timed_out", "denied", "uncertain"].includes(tail) || ["failed", "timed_out"].includes(event.outcome ?? "")) return { sign: "✗", role: "error", word: tail === "recorded" ? "failed" : tail.replace("_", " ") };
    if (event.effect === "model") return { sign: "✳", role: "model", word: tail === "requested" ? "model asked" : tail === "succeeded" ? "model said" : tail === "started" ? "model runs" : "model" };
    return { sign: tail === "requested" ? "▷" : tail === "started" ? "…" : "●", role: "tool", word: tail === "recorded" ? "call" : tail };
  }
  if (head === "flag" || head === "gap" || event.kind === "budget.reached") return { sign: "⚑", role: "waiting", word: tail };
  if (head === "input") return { sign: "◆", role: "waiting", word: tail === "requested" ? "asks" : "answered" };
  if (head === "history" || head === "checkpoint") return { sign: "↶", role: "state", word: tail };
  if (["state", "fact", "decision", "goal", "labels", "dead_end", "artefact"].includes(head)) return { sign: "◇", role: "state", word: head.replace("_", " ") };
  if (head === "file" || head === "resource") return { sign: "▤", role: "state", word: head };
  if (head === "payload" || head === "range") return { sign: "▒", role: "waiting", word: tail };
  if (head === "note") return { sign: "✎", role: "user", word: "note" };
  if (head === "session") return { sign: "·", role: "muted", word: `session ${tail}` };
  if (head === "lease" || head === "budget" || head === "trust" || head === "step") return { sign: "·", role: "muted", word: `${head} ${tail}` };
  if (event.kind === "context.evicted" || event.kind === "context.restored") return { sign: tail === "evicted" ? "⇤" : "⇥", role: "state", word: tail };
  if (head === "records") return { sign: "⇩", role: "muted", word: tail };
  if (head === "subagent") return { sign: "⑂", role: "tool", word: `subagent ${tail}` };
  if (head === "git_commit") return { sign: "⎇", role: "state", word: "commit" };
  return { sign: "·", role: "muted", word: event.kind.replaceAll(".", " ").replaceAll("_", " ") };
}
