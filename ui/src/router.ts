// Addresses of the page: what each path means, and how it is written. Pure text; navigation.svelte.ts moves.
//
//   /                                    sessions
//   /s/{session}                         a session; a name, an id or the start of an id
//   /s/{session}/@12  /@12.2  /e1042     a turn, an attempt, an event
//   /s/{session}/@12/state/plan/2        a key of the state at a point
//   /s/{session}/diff/@11..@12           what changed between two points
//   /s/{session}/context/@9              the model's window at a point
//   /s/{session}/files/src/a.py?at=@9    a file at a point
//   /s/{session}/why?of=e12              where something came from
//   /x/{commit}  /x/{commit}/e12         a commit by its id, wherever its session is
//
// Filters stand in the query.

export interface Address {
  /** Decoded segments of the path. */
  path: string[];
  query: URLSearchParams;
  hash: string;
}

export type Params = Record<string, string>;

export function parseAddress(href: string): Address {
  const url = new URL(href, "http://page");
  const path = url.pathname.split("/").filter(Boolean).map(decoded);
  return { path, query: url.searchParams, hash: url.hash.slice(1) };
}

/** The address of a path, each segment encoded; "@" and ":" stay readable. */
export function addressOf(path: readonly string[], query?: Record<string, string | undefined>, hash = ""): string {
  const pairs = Object.entries(query ?? {}).filter((pair): pair is [string, string] => !!pair[1]);
  const search = pairs.length ? `?${new URLSearchParams(pairs)}` : "";
  return `/${path.map(encoded).join("/")}${search}${hash ? `#${encodeURIComponent(hash)}` : ""}`;
}

/** What the names of a pattern stand for, or null when the path is another. ":name" is one segment, "*name" all that
 * follow (one at least), joined by "/". */
export function matchPath(pattern: string, path: readonly string[]): Params | null {
  const parts = pattern.split("/").filter(Boolean);
  const params: Params = {};
  for (const [at, part] of parts.entries()) {
    if (part.startsWith("*")) {
      if (path.length <= at) return null;
      params[part.slice(1)] = path.slice(at).join("/");
      return params;
    }
    const segment = path[at];
    if (segment === undefined) return null;
    if (part.startsWith(":")) params[part.slice(1)] = segment;
    else if (part !== segment) return null;
  }
  return path.length === parts.length ? params : null;
}

const POINT = /^(@(-?\d*|~\d+|\d+\.(\d+|best))|e\d+|t:.+|cp:.+|(first|last)-error|last-user|last-tool)$/;

/** Whether a segment is a point of a session: @12, @12.2, e1042, cp:name … */
export function isPoint(text: string): boolean {
  return POINT.test(text);
}

/** Where a session's page stands: the session itself, or a point of it. */
export function sessionAddress(session: string, point = "", query?: Record<string, string | undefined>): string {
  return addressOf(point ? ["s", session, point] : ["s", session], query);
}

/** A link that lasts: by what was stored, not by what it is called. */
export function permalinkOf(event: { commit_id: string; seq: number }): string {
  return new URL(addressOf(["x", event.commit_id, `e${event.seq}`]), location.href).href;
}

/** The selector of a point, for commands: fix-auth@12, fix-auth e12. */
export function selectorOf(session: string, point = ""): string {
  return point.startsWith("@") ? `${session}${point}` : point ? `${session}@${point}` : session;
}

/** A word as a shell takes it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./~-]+$/.test(word) && !word.startsWith("~") ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function encoded(segment: string): string {
  return encodeURIComponent(segment).replaceAll("%40", "@").replaceAll("%3A", ":");
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
