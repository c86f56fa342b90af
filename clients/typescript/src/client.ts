// A wakelog server: its sessions by name, the list of them, live events of all, bundles.

import type { HeadAnswer, Imported, Info, NewSession, PageSessionInfo, SessionInfo } from "./protocol.ts";
import { Session } from "./session.ts";
import type { TailItem, TailOptions } from "./tail.ts";
import { tail } from "./tail.ts";
import type { ClientOptions } from "./transport.ts";
import { Transport } from "./transport.ts";

export interface SessionFilter {
  status?: string;
  label?: string;
  agent?: string;
  parent?: string;
  name?: string;
  text?: string;
  failed?: boolean;
  live?: boolean;
  pending?: boolean;
  flagged?: boolean;
  since?: number;
}

export class Client {
  readonly #transport: Transport;

  constructor(url: string, options: ClientOptions) {
    this.#transport = new Transport(url, options);
  }

  /** The version, how durable an acknowledged append is, and what the key may do. */
  info(): Promise<Info> {
    return this.#transport.json("/v1/info");
  }

  /** The session of that name; it is created if there is none. What stands beside the name is for a new one only. */
  async open(name: string, options: Omit<NewSession, "name"> = {}): Promise<Session> {
    const body = { name, ...options };
    // Safe to repeat: opening a name that exists changes nothing.
    await this.#transport.json<HeadAnswer>("/v1/sessions", { method: "POST", body, isRepeatable: true });
    return new Session(this.#transport, name);
  }

  /** A session that exists, by name or id. Nothing is asked of the server yet. */
  session(name: string): Session {
    return new Session(this.#transport, name);
  }

  /** Sessions of the namespace, the last active first, page by page as you read on. */
  async *sessions(filter: SessionFilter = {}): AsyncGenerator<SessionInfo> {
    let after: string | undefined;
    for (;;) {
      const page = await this.#transport.json<PageSessionInfo>("/v1/sessions", { query: { ...filter, after } });
      yield* page.rows;
      if (!page.next) return;
      after = page.next;
    }
  }

  /** Live events of all sessions, in order within each. */
  tail(options: TailOptions = {}): AsyncGenerator<TailItem> {
    return tail(this.#transport, "/v1/tail", options);
  }

  /** Imports a bundle, plain or gzipped, after the server verified it; all of it or nothing. */
  importBundle(bytes: Uint8Array): Promise<Imported> {
    // Safe to repeat: a bundle whose session already exists changes nothing.
    return this.#transport.json("/v1/bundles", { method: "POST", bytes, isRepeatable: true });
  }
}
