// Live events: a text/event-stream that is opened again, after the last event that was processed, when it breaks off.

import type { EventRecord, Problem } from "./protocol.ts";
import { unknownAnswer, WakelogError } from "./problem.ts";
import type { Transport } from "./transport.ts";
import { backoff, pauseFor } from "./transport.ts";

export interface TailOptions {
  /** Start after this event; by default with what is new. In a tail of all sessions: an id that came with one. */
  after?: number | string;
  /** A kind or its first word. */
  kind?: string;
  /** Ends the tail. */
  signal?: AbortSignal;
}

export interface TailItem {
  /** Continues after this event. */
  id: string;
  event: EventRecord;
}

interface StreamField {
  id: string;
  type: string;
  data: string;
}

/**
 * Events as they are stored, each once and in order, until the signal says stop. A broken connection is opened again
 * after the event that was given last; an error is thrown only when the server refuses for good.
 */
export async function* tail(transport: Transport, path: string, options: TailOptions = {}): AsyncGenerator<TailItem> {
  const { kind, signal } = options;
  let last = options.after === undefined ? "" : String(options.after);
  let failures = 0;
  while (!signal?.aborted) {
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      const query = { after: last || undefined, kind };
      const response = await transport.send(path, { query, headers, isStream: true, ...(signal ? { signal } : {}) });
      for await (const field of fields(response)) {
        if (field.type === "end") throw new WakelogError(JSON.parse(field.data) as Problem);
        if (field.data === "") continue;
        failures = 0;
        last = field.id;
        yield { id: field.id, event: JSON.parse(field.data) as EventRecord };
      }
    } catch (error) {
      if (signal?.aborted) return;
      const found = error instanceof WakelogError ? error : unknownAnswer("the stream broke off", error);
      if (!found.isRetryable) throw found;
    }
    failures += 1;
    await pauseFor(backoff(failures), signal).catch(() => undefined);
  }
}

/** The fields of a stream, as the HTML standard reads them. An event that was cut off is none. */
async function* fields(response: Response): AsyncGenerator<StreamField> {
  let rest = "";
  let field: StreamField = { id: "", type: "message", data: "" };
  const decoder = new TextDecoder();
  for await (const chunk of chunks(response)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() as string;
    for (const line of lines) {
      if (line === "" || line === "\r") {
        yield field;
        field = { id: field.id, type: "message", data: "" };
        continue;
      }
      const [name, value] = splitField(line.replace(/\r$/, ""));
      if (name === "data") field.data = field.data === "" ? value : `${field.data}\n${value}`;
      else if (name === "id") field.id = value;
      else if (name === "event") field.type = value;
    }
  }
}

async function* chunks(response: Response): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined); // whoever leaves the loop early closes the connection
  }
}

function splitField(line: string): [string, string] {
  const colon = line.indexOf(":");
  return colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
}
