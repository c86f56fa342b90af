// Which words of two texts differ. What the texts share at both ends is set aside first; the rest is aligned by its
// longest common run of words, or taken as a whole where that would cost too much. Texts with little in common are not
// cut into words: nobody reads a sentence of which every second word is marked.

export interface WordPart {
  text: string;
  isChanged: boolean;
}

export interface WordDiff {
  before: WordPart[];
  after: WordPart[];
  /** How much of the longer text both have, 0 to 1. */
  shared: number;
}

const CELLS_MAX = 250_000;
const SHARED_MIN = 0.3;

export function diffWords(before: string, after: string): WordDiff {
  const [a, b] = [wordsOf(before), wordsOf(after)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const [middleA, middleB] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const kept = middleA.length * middleB.length <= CELLS_MAX ? common(middleA, middleB) : { a: new Set<number>(), b: new Set<number>() };
  const mark = (words: string[], shared: Set<number>) =>
    words.map((text, at) => ({ text, isChanged: at >= head && at < words.length - tail && !shared.has(at - head) }));
  const [left, right] = [mark(a, kept.a), mark(b, kept.b)];
  const size = (parts: WordPart[]) => parts.reduce((sum, part) => sum + (part.isChanged || !part.text.trim() ? 0 : part.text.length), 0);
  const shared = size(left) / Math.max(solid(before), solid(after), 1);
  if (shared < SHARED_MIN) return { before: [{ text: before, isChanged: false }], after: [{ text: after, isChanged: false }], shared };
  return { before: joined(left), after: joined(right), shared };
}

/** How many characters are no spaces. */
function solid(text: string): number {
  return text.replace(/\s+/g, "").length;
}

function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

/** The places of the words that both have, in the same order. */
function common(a: string[], b: string[]): { a: Set<number>; b: Set<number> } {
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i * width + j] = a[i] === b[j] ? table[(i + 1) * width + j + 1]! + 1 : Math.max(table[(i + 1) * width + j]!, table[i * width + j + 1]!);
  const found = { a: new Set<number>(), b: new Set<number>() };
  for (let i = 0, j = 0; i < a.length && j < b.length; )
    if (a[i] === b[j]) {
      found.a.add(i++);
      found.b.add(j++);
    } else if (table[(i + 1) * width + j]! >= table[i * width + j + 1]!) i++;
    else j++;
  return found;
}

function joined(parts: WordPart[]): WordPart[] {
  const out: WordPart[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    if (last && last.isChanged === part.isChanged) last.text += part.text;
    else out.push({ ...part });
  }
  return out;
}
