// The little of Markdown that makes an agent's words readable: headings, lists, quotes, code, emphasis. It only sorts
// text into parts; what is shown is text in elements of the page's own, never markup that was recorded.

export type Line =
  | { type: "text"; text: string }
  | { type: "heading"; text: string }
  | { type: "quote"; text: string }
  | { type: "item"; text: string; mark: string; depth: number }
  | { type: "code"; text: string; language: string }
  | { type: "table"; rows: string[][] }
  | { type: "rule" }
  | { type: "gap" };

export interface Span {
  text: string;
  style: "" | "code" | "strong";
}

const FENCE = /^\s{0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const ITEM = /^(\s*)([-*+•]|\d{1,3}[.)])\s+(.*)$/;

/** A text in lines; neighbouring lines of prose are one. */
export function linesOf(text: string): Line[] {
  const found: Line[] = [];
  const rows = text.replaceAll("\r\n", "\n").split("\n");
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!;
    const fence = FENCE.exec(row);
    if (fence) {
      const code: string[] = [];
      while (++at < rows.length && !rows[at]!.trimStart().startsWith(fence[1]!)) code.push(rows[at]!);
      found.push({ type: "code", text: code.join("\n"), language: fence[2]! });
      continue;
    }
    const last = found.at(-1);
    const item = ITEM.exec(row);
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(row);
    if (!row.trim()) {
      if (last && last.type !== "gap") found.push({ type: "gap" });
    } else if (heading) found.push({ type: "heading", text: heading[1]! });
    else if (/^\s*\|.*\|\s*$/.test(row)) {
      const cells = row.trim().slice(1, -1).split("|").map((cell) => cell.trim());
      if (last?.type !== "table") found.push({ type: "table", rows: [cells] });
      else if (!cells.every((cell) => /^:?-+:?$/.test(cell))) last.rows.push(cells);
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(row)) found.push({ type: "rule" });
    else if (item) found.push({ type: "item", text: item[3]!, mark: /\d/.test(item[2]!) ? item[2]! : "•", depth: Math.min(4, Math.floor(item[1]!.replaceAll("\t", "  ").length / 2)) });
    else if (row.startsWith(">")) found.push({ type: "quote", text: row.replace(/^>+ ?/, "") });
    else if (last?.type === "text") last.text += `\n${row}`;
    else if (last?.type === "item" && /^\s{2,}\S/.test(row)) last.text += ` ${row.trim()}`;
    else found.push({ type: "text", text: row });
  }
  if (found.at(-1)?.type === "gap") found.pop();
  return found;
}

const STYLES = /`([^`\n]+)`|\*\*([^*\n]+)\*\*/g;

/** A line in spans of one style. */
export function spansOf(text: string): Span[] {
  const spans: Span[] = [];
  let from = 0;
  for (const found of text.matchAll(STYLES)) {
    if (found.index > from) spans.push({ text: text.slice(from, found.index), style: "" });
    spans.push(found[1] !== undefined ? { text: found[1], style: "code" } : { text: found[2]!, style: "strong" });
    from = found.index + found[0].length;
  }
  if (from < text.length) spans.push({ text: text.slice(from), style: "" });
  return spans;
}

/** The first lines of a text, and whether there are more; a line that never ends counts as many. */
export function beginningOf(text: string, lines: number, width = 110): { text: string; isAll: boolean } {
  let at = 0;
  for (let left = lines; left > 0; left--) {
    const end = text.indexOf("\n", at);
    const stop = end < 0 ? text.length : end;
    const fits = Math.floor((stop - at) / width);
    if (fits >= left) return { text: `${text.slice(0, at + left * width)}…`, isAll: false };
    left -= fits;
    at = stop + 1;
    if (end < 0) return { text, isAll: true };
  }
  return { text: text.slice(0, at - 1), isAll: text.slice(at).trim() === "" };
}
