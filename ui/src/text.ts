// Words for people: times, amounts, and recorded text made harmless.

export interface Piece {
  text: string;
  /** What it is, when it is no letter but would act as one. */
  control: string;
}

// C0 and C1 controls but tab and line break; zero-width and bidi characters; tags; variation selectors stay.
const CONTROLS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** A recorded text in pieces: characters that steer, hide or reorder are named instead of shown. */
export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(CONTROLS)) {
    const char = match[0];
    if (char === "\r" && text[match.index + 1] === "\n") continue;
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), control: "" });
    pieces.push({ text: nameOf(char), control: `U+${char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}` });
    from = match.index + char.length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), control: "" });
  return pieces;
}

const NAMES: Record<number, string> = {
  0x00: "NUL", 0x07: "BEL", 0x08: "BS", 0x0d: "CR", 0x1b: "ESC", 0x7f: "DEL", 0xad: "SHY",
  0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM", 0x202a: "LRE", 0x202b: "RLE",
  0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI",
  0x2069: "PDI", 0xfeff: "BOM",
};

function nameOf(char: string): string {
  const code = char.codePointAt(0)!;
  return NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** The same as plain text, for attributes and titles. */
export function inert(text: string): string {
  return piecesOf(text).map((piece) => (piece.control ? `␛${piece.text}` : piece.text)).join("");
}

/** A snippet in parts: what matched stands between « and ». */
export function partsOf(snippet: string): { text: string; isHit: boolean }[] {
  return snippet
    .split(/(«[^»]*»)/)
    .filter(Boolean)
    .map((part) => (part.startsWith("«") && part.endsWith("»") ? { text: part.slice(1, -1), isHit: true } : { text: part, isHit: false }));
}

export function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

const whole = new Intl.NumberFormat("en");

export function count(value: number): string {
  return whole.format(value);
}

/** "3 turns", "1 turn". */
export function many(value: number, word: string, plural = `${word}s`): string {
  return `${count(value)} ${value === 1 ? word : plural}`;
}

/** 1,234 → 1.2k */
export function brief(value: number): string {
  if (value < 1000) return String(value);
  for (const [size, sign] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const)
    if (value >= size) return `${(value / size).toFixed(value / size < 10 ? 1 : 0)}${sign}`;
  return String(value);
}

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  if (size < 1048576) return `${(size / 1024).toFixed(size < 10240 ? 1 : 0)} KB`;
  return `${(size / 1048576).toFixed(1)} MB`;
}

/** Money is an estimate: of what was reported, and prices of a table. */
export function money(micros: number): string {
  if (!micros) return "–";
  const usd = micros / 1e6;
  return usd < 0.01 ? "<$0.01" : `$${usd.toFixed(2)}`;
}

export function duration(us: number): string {
  const ms = us / 1000;
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} m ${Math.round(s % 60)} s`;
  const h = Math.floor(m / 60);
  return h < 48 ? `${h} h ${m % 60} m` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

/** How long ago: 12s, 5m, 3h, 2d. */
export function age(us: number, now = Date.now()): string {
  const s = Math.max(0, now - us / 1000) / 1000;
  if (s < 5) return "now";
  if (s < 60) return `${Math.floor(s)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86400) return `${Math.floor(s / 3600)}h`;
  if (s < 86400 * 60) return `${Math.floor(s / 86400)}d`;
  return `${Math.floor(s / 86400 / 30)}mo`;
}

function pad(value: number, size = 2): string {
  return String(value).padStart(size, "0");
}

export function clock(us: number, seconds = true): string {
  const at = new Date(us / 1000);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}${seconds ? `:${pad(at.getSeconds())}` : ""}`;
}

export function day(us: number): string {
  const at = new Date(us / 1000);
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

export function moment(us: number): string {
  return `${day(us)} ${clock(us)}`;
}
