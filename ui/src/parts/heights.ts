// Where each row of a long list stands, when rows have heights of their own. Sums are kept for blocks of rows, so that
// finding a place among 100,000 rows adds up a few hundred numbers.
const BLOCK = 256;

export class Heights {
  #rows: Float32Array = new Float32Array(0);
  #blocks: Float64Array = new Float64Array(0);
  #count = 0;
  #estimate: number;

  constructor(estimate: number) {
    this.#estimate = estimate;
  }

  get count(): number {
    return this.#count;
  }

  resize(count: number, estimate = this.#estimate): void {
    if (estimate !== this.#estimate) {
      this.#estimate = estimate;
      this.#count = 0;
    }
    if (count === this.#count) return;
    if (count > this.#rows.length) {
      const rows = new Float32Array(Math.max(count, this.#rows.length * 2));
      rows.set(this.#rows);
      this.#rows = rows;
    }
    if (count > this.#count) this.#rows.fill(this.#estimate, this.#count, count);
    this.#count = count;
    const blocks = new Float64Array(Math.ceil(count / BLOCK));
    for (let i = 0; i < count; i++) blocks[(i / BLOCK) | 0]! += this.#rows[i]!;
    this.#blocks = blocks;
  }

  set(row: number, height: number): number {
    const change = height - this.#rows[row]!;
    if (Math.abs(change) < 0.5) return 0;
    this.#rows[row] = height;
    this.#blocks[(row / BLOCK) | 0]! += change;
    return change;
  }

  of(row: number): number {
    return this.#rows[row] ?? this.#estimate;
  }

  offset(row: number): number {
    const block = (row / BLOCK) | 0;
    let sum = 0;
    for (let b = 0; b < block; b++) sum += this.#blocks[b]!;
    for (let i = block * BLOCK; i < Math.min(row, this.#count); i++) sum += this.#rows[i]!;
    return sum;
  }

  get total(): number {
    return this.#blocks.reduce((sum, block) => sum + block, 0);
  }

  /** The row at a height. */
  at(y: number): number {
    let block = 0;
    let sum = 0;
    while (block < this.#blocks.length && sum + this.#blocks[block]! <= y) sum += this.#blocks[block++]!;
    let row = block * BLOCK;
    while (row < this.#count && sum + this.#rows[row]! <= y) sum += this.#rows[row++]!;
    return Math.min(row, Math.max(0, this.#count - 1));
  }
}
