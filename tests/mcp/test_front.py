"""The front answers a client's first requests before the server is loaded, in the server's own words."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.server.stdio import stdio_server
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

import wakelog
from wakelog.mcp.server import build_server, serve_front
from wakelog.mcp.stdio_front import LISTS, MODERN, VERSIONS, Front

pytestmark = pytest.mark.anyio
Frame = dict[str, Any]


def initialize(version: str, **more: Any) -> Frame:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}, **more}
    return {"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params}


def request(id: Any, method: str, **params: Any) -> Frame:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


READY: Frame = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Pipes:
    """The library's own stdio transport, over lines in memory."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._lines = [json.dumps(f) + "\n" for f in frames]
        self.said: list[Frame] = []
        self._wanted = sum("id" in f for f in frames)
        self._all = anyio.Event()

    async def __aiter__(self) -> Any:
        for line in self._lines:
            yield line
        with anyio.fail_after(180):
            await self._all.wait()

    async def write(self, text: str) -> None:
        self.said.append(json.loads(text))
        if len(self.said) == self._wanted:
            self._all.set()

    async def flush(self) -> None: ...


async def ask_server(store: wakelog.Store, frames: Sequence[Frame], *, read_only: bool = False) -> dict[Any, Frame]:
    pipes: Any = Pipes(frames)
    low = build_server(store, read_only=read_only)._lowlevel_server
    async with stdio_server(pipes, pipes) as (reader, writer):
        await low.run(reader, writer, low.create_initialization_options())
    return {frame["id"]: frame for frame in pipes.said}


def ask_front(frames: Sequence[Frame], *, read_only: bool = False) -> tuple[dict[Any, Frame], list[str]]:
    """What the front answers by itself, and the lines it keeps for the server."""
    source, target = os.pipe(), os.pipe()
    front = Front(source[0], target[1], read_only=read_only)
    for frame in frames:
        os.write(source[1], json.dumps(frame).encode() + b"\n")
    os.close(source[1])
    front.greet()
    kept = list(iter(front.readline, ""))
    os.close(target[1])
    with os.fdopen(target[0], "rb") as answers:
        said = [json.loads(line) for line in answers]
    os.close(source[0])
    return {frame["id"]: frame for frame in said}, kept


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "2026-07-28", "1999-01-01"])
async def test_the_first_answers_are_those_of_the_server(store: wakelog.Store, version: str, read_only: bool) -> None:
    frames = [
        initialize(version),
        READY,
        *(request(n, method) for n, method in enumerate(LISTS)),
        request("p", "ping"),
    ]
    at_once, kept = ask_front(frames, read_only=read_only)
    assert at_once == await ask_server(store, frames, read_only=read_only)
    # The server must know whom it talks to, and what was agreed.
    assert [json.loads(line)["method"] for line in kept] == ["initialize", "notifications/initialized"]
    assert json.loads(kept[0])["params"]["protocolVersion"] == at_once["first"]["result"]["protocolVersion"]


def discover(version: str = MODERN, **more: Any) -> Frame:
    envelope = {"protocolVersion": version, "clientCapabilities": {}, **more}
    return request("d", "server/discover", _meta={f"io.modelcontextprotocol/{k}": v for k, v in envelope.items()})


@pytest.mark.parametrize("more", [{}, {"clientInfo": {"name": "t", "version": "1"}}])
async def test_a_client_without_a_handshake_is_told_at_once_what_there_is(store: wakelog.Store, more: Frame) -> None:
    at_once, kept = ask_front([discover(**more)])
    assert at_once == await ask_server(store, [discover(**more)])
    assert kept == []


def test_a_client_that_did_not_wait_for_it_may_begin_with_a_handshake() -> None:
    """Had the server heard of the first question, it would refuse everything that comes without an envelope."""
    at_once, kept = ask_front([discover(), initialize("2025-11-25"), request(2, "tools/list")])
    assert [*at_once] == ["d", "first", 2]
    assert [json.loads(line)["method"] for line in kept] == ["initialize"]


def test_the_versions_are_those_of_the_library() -> None:
    assert VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    assert (MODERN,) == MODERN_PROTOCOL_VERSIONS


@pytest.mark.parametrize(
    "frame",
    [
        initialize("2025-11-25", clientInfo={"name": "t"}),
        initialize("2025-11-25", capabilities=None),
        {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
        request(1, "tools/list"),
        request(1, "server/discover", _meta={"io.modelcontextprotocol/protocolVersion": "2026-07-28"}),
        discover("2025-11-25"),
        discover(clientCapabilities=None),
    ],
)
def test_what_only_the_server_can_answer_waits_for_it(frame: Frame) -> None:
    answered, kept = ask_front([frame])
    assert answered == {}
    assert [json.loads(line) for line in kept] == [frame]


def test_a_request_that_is_too_long_to_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakelog.codec.lines.LINE_MAX", 1000)
    long = request(1, "tools/call", name="x", arguments={"text": "x" * 2000})
    answered, kept = ask_front([long, request(2, "tools/list")])
    assert [json.loads(line)["id"] for line in kept] == [2]
    assert answered[None]["error"]["code"] == -32600


async def test_what_was_asked_meanwhile_is_answered_once_the_server_is_there(store: wakelog.Store) -> None:
    source, target = os.pipe(), os.pipe()
    front = Front(source[0], target[1])
    call = request(7, "tools/call", name="open_session", arguments={"name": "x"})
    frames = [initialize("2025-11-25"), READY, request(2, "tools/list"), call]
    os.write(source[1], b"".join(json.dumps(f).encode() + b"\n" for f in frames))
    front.greet()
    with anyio.fail_after(180), os.fdopen(target[0], "rb") as answers:
        async with anyio.create_task_group() as group:
            group.start_soon(serve_front, build_server(store), front)
            said = [json.loads(await anyio.to_thread.run_sync(answers.readline)) for _ in range(3)]
            os.write(source[1], json.dumps(request(8, "tools/list")).encode() + b"\n")
            said.append(json.loads(await anyio.to_thread.run_sync(answers.readline)))
            os.close(source[1])
    # Each once: the server's own answer to initialize does not reach the client.
    assert [frame["id"] for frame in said] == ["first", 2, 7, 8]
    assert said[1]["result"] == said[3]["result"]
    assert store.resume("x").log.entry(1).body["agent"] == "t"
    for end in (source[0], target[1]):
        os.close(end)


def test_initialize_is_answered_before_the_library_is_loaded(tmp_path: Path) -> None:
    """Not how long it takes, but what is loaded by then: the client says nothing more until it has its answer."""
    program = (
        "import sys, wakelog.cli.app as app\n"
        "from wakelog.mcp import stdio_front as front\n"
        "send = front.Front._send\n"
        "def told(self, piece):\n"
        "    heavy = {'mcp', 'mcp_types', 'pydantic', 'wakelog.store', 'wakelog.session'} & set(sys.modules)\n"
        "    print(sorted(heavy), file=sys.stderr)\n"
        "    send(self, piece)\n"
        "front.Front._send = told\n"
        "sys.exit(app.run(['mcp']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(json.dumps(initialize("2025-11-25")).encode() + b"\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "wakelog"
        server.stdin.close()
        assert server.stderr.readline() == b"[]\n"
        assert server.wait(180) == 0
    assert list(tmp_path.iterdir()) == []
