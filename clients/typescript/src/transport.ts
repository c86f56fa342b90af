// Requests, sent again where that is safe. A request is safe to repeat when it reads, or when it carries an id by which
// the server knows it again; the caller says so. Everything else is sent once, and its error tells that the answer is
// unknown.

import { problemOf, unknownAnswer, WakelogError } from "./problem.ts";

export interface ClientOptions {
  /** The key of `wakelog serve`. It is sent in a header, and never part of an error. */
  key: string;
  /** One of the key's namespaces; by default its own. */
  namespace?: string;
  /** How often a request that is safe to repeat is sent again; 4 by default. */
  retries?: number;
  /** How long one try may take until its answer is there; 30,000 by default. */
  timeoutMs?: number;
  /** Anything that does what the platform's `fetch` does. */
  fetch?: typeof globalThis.fetch;
}

export interface Ask {
  method?: "GET" | "POST" | "DELETE";
  query?: object;
  body?: unknown;
  /** Sent as it is, with its media type. */
  bytes?: Uint8Array;
  headers?: Record<string, string>;
  isRepeatable?: boolean;
  signal?: AbortSignal;
  /** For a stream: there is no limit to the time it takes. */
  isStream?: boolean;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

export class Transport {
  readonly #base: string;
  readonly #options: Required<Omit<ClientOptions, "namespace">>;

  constructor(url: string, options: ClientOptions) {
    const base = new URL(url);
    if (base.protocol !== "http:" && base.protocol !== "https:") {
      throw new TypeError(`${url} is no address of a server: it starts with http:// or https://`);
    }
    if (!options.key) throw new TypeError("a key is needed: `wakelog key new` makes one");
    const space = options.namespace ? `/ns/${encodeURIComponent(options.namespace)}` : "";
    this.#base = base.origin + base.pathname.replace(/\/$/, "") + space;
    this.#options = { retries: 4, timeoutMs: 30_000, fetch: globalThis.fetch.bind(globalThis), ...options };
  }

  /** The JSON of an answer. */
  async json<T>(path: string, ask: Ask = {}): Promise<T> {
    const response = await this.send(path, ask);
    try {
      return (await response.json()) as T;
    } catch (error) {
      throw unknownAnswer(`the answer of ${path} ended in the middle`, error);
    }
  }

  /** An answer whose status says that all went well. */
  async send(path: string, ask: Ask = {}): Promise<Response> {
    const isRepeatable = ask.isRepeatable ?? (ask.method ?? "GET") === "GET";
    for (let sent = 1; ; sent += 1) {
      let found: WakelogError;
      let pause = 0;
      try {
        const response = await this.#once(path, ask);
        if (response.ok) return response;
        pause = 1_000 * Number(response.headers.get("Retry-After") ?? 0);
        found = await problemOf(response);
      } catch (error) {
        ask.signal?.throwIfAborted();
        found = unknownAnswer(`no answer came from ${this.#base}${path}: ${(error as Error).message}`, error);
      }
      if (!found.isRetryable || !isRepeatable || sent > this.#options.retries) throw found;
      await pauseFor(Math.max(pause, backoff(sent)), ask.signal);
    }
  }

  #once(path: string, ask: Ask): Promise<Response> {
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(ask.query ?? {})) {
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = { ...ask.headers, Authorization: `Bearer ${this.#options.key}` };
    let body: BodyInit | undefined;
    if (ask.bytes !== undefined) {
      headers["Content-Type"] = "application/octet-stream";
      body = new Uint8Array(ask.bytes);
    } else if (ask.body !== undefined) {
      headers["Content-Type"] = "application/json";
      body = JSON.stringify(ask.body);
    }
    const signals = [ask.signal, ask.isStream ? undefined : AbortSignal.timeout(this.#options.timeoutMs)];
    const signal = AbortSignal.any(signals.filter((each) => each !== undefined));
    return this.#options.fetch(url, { method: ask.method ?? "GET", headers, signal, ...(body ? { body } : {}) });
  }
}

/** Twice as long each time, and by chance up to half of it less: clients that failed together do not return together. */
export function backoff(sent: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (sent - 1)) * (1 - Math.random() / 2);
}

export function pauseFor(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
