// What people call a session, and what a command calls it.
import { quoted } from "./router";

interface Named {
  id?: string;
  session?: string;
  name: string;
}

/** Its name, or as much of its id as tells it from others. */
export function titleOf(session: Named): string {
  return session.name || shortId(session.id ?? session.session ?? "");
}

export function shortId(id: string): string {
  const [root = "", fork] = id.split(".");
  return fork ? `${root.slice(0, 12)}.${fork}` : root.slice(0, 12);
}

/** What names it in a command to be pasted: its name where that is harmless in a shell, else its id. */
export function handleOf(session: Named): string {
  const id = session.id ?? session.session ?? "";
  return /^[A-Za-z0-9_][\w.:+-]*$/.test(session.name) ? session.name : quoted(id);
}
