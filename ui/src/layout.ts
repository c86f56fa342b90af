// Where the boxes of an influence graph stand: causes on the left, effects on the right, one column a hop.
import type { Box, Influence, Line } from "./looks";

export const WIDTH = 244;
export const HEIGHT = 84;
const GAP_X = 64;
const GAP_Y = 16;
const MARGIN = 12;

export interface Placed {
  box: Box;
  x: number;
  y: number;
  column: number;
}

export interface Drawn {
  line: Line;
  path: string;
}

export interface Layout {
  boxes: Placed[];
  lines: Drawn[];
  width: number;
  height: number;
}

export function layOut(graph: Influence): Layout {
  const deepest = Math.max(0, ...graph.boxes.map((box) => box.hops));
  const columns: Box[][] = Array.from({ length: deepest + 1 }, () => []);
  for (const box of graph.boxes) columns[graph.direction === "causes" ? deepest - box.hops : box.hops]!.push(box);
  order(columns, graph.lines);
  const tallest = Math.max(1, ...columns.map((column) => column.length));
  const height = tallest * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN;
  const placed = new Map<number, Placed>();
  for (const [at, column] of columns.entries()) {
    const taken = column.length * (HEIGHT + GAP_Y) - GAP_Y;
    for (const [row, box] of column.entries())
      placed.set(box.seq, {
        box,
        x: MARGIN + at * (WIDTH + GAP_X),
        y: (height - taken) / 2 + row * (HEIGHT + GAP_Y),
        column: at,
      });
  }
  const lines = graph.lines.flatMap((line) => {
    const from = placed.get(line.first);
    const to = placed.get(line.last);
    return from && to ? [{ line, path: curve(from, to) }] : [];
  });
  const width = columns.length * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN;
  return { boxes: columns.flat().map((box) => placed.get(box.seq)!), lines, width, height };
}

/** Puts each box near the middle of what it is joined to, a few times over, so that few lines cross. */
function order(columns: Box[][], lines: Line[]): void {
  const joined = new Map<number, number[]>();
  for (const line of lines) {
    joined.set(line.first, [...(joined.get(line.first) ?? []), line.last]);
    joined.set(line.last, [...(joined.get(line.last) ?? []), line.first]);
  }
  const rank = new Map<number, number>();
  for (const column of columns) {
    column.sort((a, b) => a.seq - b.seq);
    column.forEach((box, at) => rank.set(box.seq, at / Math.max(1, column.length)));
  }
  for (let pass = 0; pass < 4; pass++)
    for (const column of pass % 2 ? columns : columns.toReversed()) {
      const middle = (box: Box) => {
        const near = (joined.get(box.seq) ?? []).map((seq) => rank.get(seq) ?? 0);
        return near.length ? near.reduce((sum, each) => sum + each, 0) / near.length : (rank.get(box.seq) ?? 0);
      };
      const wanted = new Map(column.map((box) => [box.seq, middle(box)]));
      column.sort((a, b) => wanted.get(a.seq)! - wanted.get(b.seq)! || a.seq - b.seq);
      column.forEach((box, at) => rank.set(box.seq, at / Math.max(1, column.length)));
    }
}

function curve(from: Placed, to: Placed): string {
  const y1 = from.y + HEIGHT / 2;
  const y2 = to.y + HEIGHT / 2;
  if (from.column === to.column) {
    const x = from.x + WIDTH;
    return `M ${x} ${y1} C ${x + 40} ${y1}, ${x + 40} ${y2}, ${x + 2} ${y2}`;
  }
  const x1 = from.x + WIDTH;
  const x2 = to.x - 5;
  const bend = Math.max(28, (x2 - x1) / 2);
  return `M ${x1} ${y1} C ${x1 + bend} ${y1}, ${x2 - bend} ${y2}, ${x2} ${y2}`;
}
