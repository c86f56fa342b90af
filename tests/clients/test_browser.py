"""The TypeScript client in a browser, on a page of another origin than the server's."""

import contextlib
import http.server
import importlib.util
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.browser import find_browser
from tests.node import CLIENT, NODE
from wakelog.http.server import serving
from wakelog.http.state import Settings

STRIP = """
const { stripTypeScriptTypes } = require("node:module");
const { readFileSync, readdirSync } = require("node:fs");
const files = readdirSync("src").map((name) => [name, stripTypeScriptTypes(readFileSync("src/" + name, "utf8"))]);
console.log(JSON.stringify(Object.fromEntries(files)));
"""
WORK = """async ([url, key]) => {
  const { Client, readBundle } = await import("/src/index.ts");
  const session = await new Client(url, { key }).open("from-a-page", { goal: "seen" });
  const kinds = [];
  const seen = (async () => {
    for await (const { event } of session.tail({ after: 0 })) if (kinds.push(event.kind) === 3) break;
  })();
  await session.append({ kind: "fact.recorded", body: { key: "a", value: 1 } });
  await session.append({ kind: "note.added", body: { text: "é" } });
  await seen;
  const refused = await readBundle(await session.bundle()).catch((error) => error.message);
  const state = await session.state(undefined, "/facts");
  return { kinds, refused, facts: state.value, head: (await session.head()).seq };
}"""


@contextlib.contextmanager
def site() -> Iterator[str]:
    """A page and the client's sources, as JavaScript, at an address of its own."""
    told = subprocess.run([NODE, "-e", STRIP], cwd=CLIENT, capture_output=True, check=True, timeout=60)
    sources = json.loads(told.stdout)

    class Files(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = sources.get(self.path.removeprefix("/src/"))
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if found is None else "text/javascript")
            self.end_headers()
            self.wfile.write((found or "<!doctype html><title>board</title>").encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="playwright is not installed")
@pytest.mark.skipif(not find_browser(), reason="there is no chromium")
def test_a_page_of_a_trusted_origin_appends_follows_and_reads(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    with (
        site() as origin,
        serving(Settings(url=str(tmp_path / "store"), rate=0, trusted_origins=(origin,))) as running,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(origin)
        found = page.evaluate(WORK, [running.url, running.key])
        browser.close()
    assert found["kinds"] == ["session.opened", "fact.recorded", "note.added"]
    assert found["facts"]["a"]["value"] == 1
    assert found["head"] == 3
    assert "needs `hashes`" in found["refused"]
