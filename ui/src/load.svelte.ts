// One question to the server at a time: a newer one ends the older, and an answer that comes late is dropped.

export class Loader<T> {
  value: T | null = $state.raw(null);
  error: unknown = $state.raw(null);
  isLoading = $state(false);
  /** How long the last answer took, in milliseconds. */
  took = $state(0);
  #controller: AbortController | null = null;

  async run(ask: (signal: AbortSignal) => Promise<T>): Promise<void> {
    this.#controller?.abort();
    const mine = (this.#controller = new AbortController());
    const began = performance.now();
    this.isLoading = true;
    try {
      const value = await ask(mine.signal);
      if (mine.signal.aborted) return;
      this.value = value;
      this.error = null;
      this.took = performance.now() - began;
    } catch (error) {
      if (mine.signal.aborted) return;
      this.error = error;
    }
    this.isLoading = false;
  }

  stop(): void {
    this.#controller?.abort();
    this.isLoading = false;
  }
}
