// The client against a real server: WAKELOG_URL and WAKELOG_KEY name it (tests/clients/test_typescript.py starts one).

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { BrokenBundleError, Client, readBundle, WakelogError } from "../src/index.ts";
import type { ClientOptions, EventIn, JsonObject, TailItem } from "../src/index.ts";

const { WAKELOG_URL: url = "", WAKELOG_KEY: key = "" } = process.env;
const client = (options: Partial<ClientOptions> = {}): Client => new Client(url, { key, ...options });
const fresh = (): string => `s-${randomUUID()}`;
const fact = (name: string, value: string): EventIn => ({ kind: "fact.recorded", body: { key: name, value } });

async function collected<T>(items: AsyncIterable<T>, most = Number.POSITIVE_INFINITY): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) {
    found.push(item);
    if (found.length >= most) break;
  }
  return found;
}

/** A fetch that does the request and loses its answer, so many times, where `hits` says so. */
function losing(times: number, hits: (url: string) => boolean): typeof fetch {
  let left = times;
  return async (input, init) => {
    const response = await fetch(input, init);
    if (!hits(String(input)) || left === 0) return response;
    left -= 1;
    await response.arrayBuffer();
    throw new TypeError("the connection was reset");
  };
}

test("what is appended is in the state, the events, the messages and the diff", async () => {
  const session = await client().open(fresh(), { goal: "ship it", labels: { team: "a" } });
  await session.append([{ kind: "turn.started", body: { input: "go" } }, fact("region", "eu")]);
  await session.append([{ kind: "message.added", body: { role: "user", content: "hello" } }]);
  const head = await session.append({ kind: "turn.ended", body: {} });
  assert.equal(head.seq, 5);
  const facts = (await session.state("@1", "/facts")).value as { region: { value: string } };
  assert.equal(facts.region.value, "eu");
  assert.deepEqual((await collected(session.events())).map((event) => event.seq), [1, 2, 3, 4, 5]);
  assert.equal((await session.messages()).at(-1)?.content, "hello");
  assert.match(JSON.stringify(await session.diff("@1")), /\/facts\/region/);
  assert.equal((await session.summary()).goal, "ship it");
});

test("an append whose answer is lost is stored once", async () => {
  const name = fresh();
  await client().open(name);
  const session = client({ fetch: losing(2, (path) => path.endsWith("/events")) }).session(name);
  const head = await session.append(fact("once", "1"));
  assert.equal(head.seq, 2);
  assert.equal((await client().session(name).head()).seq, 2);
});

test("what is not safe to repeat is sent once, and its answer is unknown", async () => {
  const name = fresh();
  const session = await client().open(name);
  await session.append([fact("a", "1"), fact("b", "2")]);
  const unlucky = client({ fetch: losing(1, (path) => path.endsWith("/rewind")) }).session(name);
  await assert.rejects(unlucky.rewind("e2"), (error: WakelogError) => error.kind === "answer-unknown");
  assert.equal((await session.head()).seq, 4);
});

test("a writer that came too late is told where the session is", async () => {
  const session = await client().open(fresh());
  await session.append(fact("a", "1"), { expect: 1 });
  await assert.rejects(session.append(fact("b", "2"), { expect: 1 }), (error: WakelogError) => {
    assert.deepEqual([error.kind, error.group, error.headSeq], ["head-moved", "conflict", 2]);
    return true;
  });
});

test("an event that is not allowed names those that are", async () => {
  const session = await client().open(fresh());
  await assert.rejects(session.append({ kind: "turn.ended", body: {} }), (error: WakelogError) => {
    assert.ok(error.legal.includes("turn.started"));
    return error.group === "not-allowed";
  });
});

test("a busy server is asked again, after the time it names", async () => {
  let asked = 0;
  const busy: typeof fetch = async (input, init) => {
    asked += 1;
    if (asked > 2) return fetch(input, init);
    const problem = { type: "", title: "", status: 503, detail: "busy", kind: "server-busy", group: "unavailable" };
    return Response.json({ ...problem, retryable: true }, { status: 503, headers: { "Retry-After": "0" } });
  };
  await client({ fetch: busy }).info();
  assert.equal(asked, 3);
});

test("no error holds the key", async () => {
  const refused = new Client(url, { key: "wl_wrong_0123456789abcdef" });
  await assert.rejects(refused.info(), (error: WakelogError) => {
    assert.doesNotMatch(`${error.stack} ${JSON.stringify(error)}`, /0123456789abcdef/);
    return error.status === 401;
  });
  const nobody = new Client("http://127.0.0.1:9", { key: "wl_secret", retries: 0 });
  await assert.rejects(nobody.info(), (error: WakelogError) => {
    assert.doesNotMatch(`${error.stack}`, /wl_secret/);
    return error.kind === "answer-unknown";
  });
});

test("events come page by page, each once", async () => {
  const session = await client().open(fresh());
  for (let part = 0; part < 3; part += 1) {
    await session.append(Array.from({ length: 500 }, (_, at) => fact(`k${part}-${at}`, "v")));
  }
  const seqs = (await collected(session.events())).map((event) => event.seq);
  assert.deepEqual(seqs, Array.from({ length: 1501 }, (_, at) => at + 1));
});

test("a tail goes on after its connection broke, without a gap or an event twice", async () => {
  const name = fresh();
  const session = await client().open(name);
  const cutting: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let left = 2_500; // bytes until the line breaks: in the middle of some event
    const cut = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        const part = value.subarray(0, left);
        left -= part.length;
        controller.enqueue(part);
        if (left === 0) {
          await reader.cancel();
          controller.error(new TypeError("the connection was reset"));
        }
      },
      cancel: () => reader.cancel(),
    });
    return new Response(cut, { headers: response.headers });
  };
  const items = collected(client({ fetch: cutting }).session(name).tail({ after: 0 }), 7);
  for (const letter of "abcdef") await session.append(fact(letter, letter.repeat(50)));
  assert.deepEqual((await items).map((item: TailItem) => item.event.seq), [1, 2, 3, 4, 5, 6, 7]);
});

test("a tail ends when it is told to", async () => {
  const session = await client().open(fresh());
  const stop = new AbortController();
  const items = collected(session.tail({ after: 1, signal: stop.signal }));
  stop.abort();
  assert.deepEqual(await items, []);
});

test("a fork has a life of its own, and a rewind can be undone", async () => {
  const session = await client().open(fresh());
  await session.append([fact("a", "1"), fact("b", "2")]);
  const fork = await session.fork({ at: "e2" });
  await fork.append(fact("c", "3"));
  assert.deepEqual(Object.keys((await fork.state(undefined, "/facts")).value as JsonObject), ["a", "c"]);
  await session.rewind("e2", "b was wrong");
  assert.deepEqual(Object.keys((await session.state(undefined, "/facts")).value as JsonObject), ["a"]);
  await session.undo();
  assert.deepEqual(Object.keys((await session.state(undefined, "/facts")).value as JsonObject), ["a", "b"]);
});

test("an old epoch is fenced off", async () => {
  const session = await client().open(fresh());
  const first = await session.takeLease("one");
  const second = await session.takeLease("two", { force: true });
  await session.append(fact("a", "1"), { guard: second });
  await assert.rejects(session.append(fact("b", "2"), { guard: first }), (error: WakelogError) => error.kind === "fenced");
});

test("a bundle is checked here, against an anchor that was kept", async () => {
  const session = await client().open(fresh());
  await session.append([{ kind: "turn.started", body: { input: "x".repeat(5000) } }, fact("a", "1")]);
  const anchor = await session.anchor();
  await session.append({ kind: "turn.ended", body: {} });
  const bytes = await session.bundle();
  const report = await readBundle(bytes, { anchor: { ...anchor } });
  const head = await session.head();
  assert.deepEqual([report.events, report.head_hash], [head.seq, head.hash]);
  const now = await session.state();
  assert.deepEqual([report.state_hash, report.state], [now.state_hash, now.value]);
  const text = new TextDecoder().decode(bytes);
  const altered = new TextEncoder().encode(text.replace("fact.recorded", "fact.retracted"));
  await assert.rejects(readBundle(altered), BrokenBundleError);
  const other = { ...anchor, hash: "0".repeat(64) };
  await assert.rejects(readBundle(bytes, { anchor: other }), BrokenBundleError);
});

test("the list has the session, and the feed its events", async () => {
  const name = fresh();
  const stop = new AbortController();
  const session = await client().open(name);
  const feed = collected(client().tail({ signal: stop.signal, kind: "fact" }), 1);
  // The feed begins with what is new; it may open after the first of these.
  const writing = (async () => {
    for (let at = 0; !stop.signal.aborted; at += 1) await session.append(fact(`k${at}`, "v"));
  })();
  assert.equal((await feed)[0]?.event.session, (await session.head()).session);
  stop.abort();
  await writing;
  const names = (await collected(client().sessions({ name }))).map((each) => each.name);
  assert.deepEqual(names, [name]);
});
