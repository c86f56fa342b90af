// What a list of sessions can be narrowed by: its name in the address and in the API, the words for people, the flag of
// `wakelog ls` that does the same, and how it is typed.
export interface Filter {
  name: string;
  title: (value: string) => string;
  flag?: (value: string) => string;
}

export const FILTERS: Filter[] = [
  { name: "text", title: (v) => `“${v}”`, flag: (v) => `--text ${v}` },
  { name: "agent", title: (v) => `agent: ${v}`, flag: (v) => `--agent ${v}` },
  { name: "status", title: (v) => `status: ${v}`, flag: (v) => `--status ${v}` },
  { name: "label", title: (v) => v.replace("=", ": "), flag: (v) => `--label ${v}` },
  { name: "name", title: (v) => `name: ${v}`, flag: (v) => `--name ${v}` },
  { name: "failed", title: () => "failed", flag: () => "--failed" },
  { name: "live", title: () => "not closed", flag: () => "--live" },
  { name: "pending", title: () => "pending calls", flag: () => "--pending" },
  { name: "flagged", title: () => "flagged", flag: () => "--flagged" },
  { name: "parent", title: () => "forks of one session", flag: (v) => `--forks-of ${v}` },
  { name: "since", title: (v) => `since ${v}`, flag: (v) => `--since ${v}` },
];

/** Reads `repo:shop is:failed after:7d words` into filters. */
export function parseFilters(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  const words: string[] = [];
  for (const token of text.match(/[\w-]+:"[^"]*"|\S+/g) ?? []) {
    const [, name = "", raw = ""] = /^([\w-]+):(.+)$/.exec(token) ?? [];
    const value = raw.replace(/^"|"$/g, "");
    if (name === "is" && ["failed", "error"].includes(value)) found.failed = "true";
    else if (name === "is" && ["live", "pending", "flagged"].includes(value)) found[value] = "true";
    else if (name === "is" && value === "waiting") found.pending = "true";
    else if (name === "after" || name === "since") found.since = value;
    else if (name === "agent" || name === "status" || name === "name") found[name] = value;
    else if (name && name !== "http" && name !== "https") found.label = `${name}=${value}`;
    else words.push(token);
  }
  if (words.length) found.text = words.join(" ");
  return found;
}
