"""The recording proxy over Streamable HTTP, with a real server behind it and a real client before it."""

import contextlib
import http.client
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError

import wakelog
from wakelog.mcp.http_proxy import HttpProxy
from wakelog.mcp.recorder import TrafficRecorder

pytestmark = pytest.mark.anyio
versions = pytest.mark.parametrize("version", ["legacy", "2026-07-28"])


def things() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("things", log_level="CRITICAL")

    @server.tool()
    def double(n: int) -> int:
        return n * 2

    @server.tool()
    async def slow(ctx: Context, steps: int) -> str:
        for step in range(steps):
            await ctx.report_progress(step, steps)
        return "é" * 50_000

    return server


@contextlib.contextmanager
def serving(app: Any) -> Iterator[int]:
    """An application on a port of its own, in a thread."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", lifespan="on"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            threading.Event().wait(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(180)


@contextlib.contextmanager
def proxied(store: wakelog.Store) -> Iterator[tuple[int, int, TrafficRecorder]]:
    recorder = TrafficRecorder(lambda: store.session("rec"), name="things")
    app = things().streamable_http_app()
    with serving(app) as behind, serving(HttpProxy(f"http://127.0.0.1:{behind}/mcp", recorder)) as front:
        yield front, behind, recorder
    recorder.close()


@versions
async def test_calls_work_as_without_it_and_are_recorded(store: wakelog.Store, version: str) -> None:
    told: list[float] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    with proxied(store) as (port, _, _):
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=version) as c:
            assert {t.name for t in (await c.list_tools()).tools} == {"double", "slow"}
            assert (await c.call_tool("double", {"n": 21})).structured_content == {"result": 42}
            long = await c.call_tool("slow", {"steps": 3}, progress_callback=progress)
            assert long.structured_content == {"result": "é" * 50_000}
            assert (await c.call_tool("double", {"n": "x"})).is_error
            assert told == [0, 1, 2]
    session = store.resume("rec")
    outcomes = [(e.kind, e.header.trust) for e in session.events(kind=("action.succeeded", "action.failed"))]
    assert outcomes == [("action.succeeded", "unverified")] * 2 + [("action.failed", "unverified")]
    assert session.state().pending_actions == {}


async def test_two_clients_with_the_same_ids_are_told_apart(store: wakelog.Store) -> None:
    with proxied(store) as (port, _, _):

        async def work(n: int) -> None:
            async with Client(f"http://127.0.0.1:{port}/mcp", mode="legacy") as c:
                for i in range(5):
                    result = await c.call_tool("double", {"n": n + i})
                    assert result.structured_content == {"result": 2 * (n + i)}

        async with anyio.create_task_group() as group:
            group.start_soon(work, 100)
            group.start_soon(work, 200)
    session = store.resume("rec")
    asked = {e.body["action"]: e.body["input"]["n"] for e in session.events(kind="action.requested")}
    answered = {
        e.body["action"]: e.body["output"]["structuredContent"]["result"]
        for e in session.events(kind="action.succeeded")
    }
    assert len(asked) == 10
    assert answered == {action: 2 * n for action, n in asked.items()}


async def test_a_foreign_host_is_left_for_the_server_to_judge(store: wakelog.Store) -> None:
    def ask(port: int, host: str) -> int:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("POST", "/mcp", b"{}", {"Host": host, "Content-Type": "application/json"})
            return connection.getresponse().status

    with proxied(store) as (port, behind, _):
        for host in ("evil.example", f"127.0.0.1:{port}"):
            bare = host.replace(str(port), str(behind))
            assert await anyio.to_thread.run_sync(ask, port, host) == await anyio.to_thread.run_sync(ask, behind, bare)


async def test_where_the_server_is_gone_the_client_is_told(store: wakelog.Store) -> None:
    recorder = TrafficRecorder(lambda: store.session("rec"), name="things")
    with serving(HttpProxy("http://127.0.0.1:9/mcp", recorder)) as port, pytest.raises((MCPError, ExceptionGroup)):
        async with Client(f"http://127.0.0.1:{port}/mcp", mode="legacy"):
            pass
    recorder.close()


async def test_where_the_store_fails_the_calls_still_work(tmp_path: Path) -> None:
    warned: list[str] = []

    def no_store() -> Any:
        return wakelog.open(tmp_path / "file" / "store").session("rec")

    (tmp_path / "file").write_text("in the way")
    recorder = TrafficRecorder(no_store, name="things", warn=warned.append)
    app = things().streamable_http_app()
    with serving(app) as behind, serving(HttpProxy(f"http://127.0.0.1:{behind}/mcp", recorder)) as port:
        async with Client(f"http://127.0.0.1:{port}/mcp") as c:
            assert (await c.call_tool("double", {"n": 1})).structured_content == {"result": 2}
    recorder.close()
    assert "not recorded" in warned[0]


async def test_space_around_the_value_of_a_header_is_not_sent_on(store: wakelog.Store) -> None:
    def ask(port: int) -> int:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
            connection.request("POST", "/mcp", b"{}", {"X-Odd": " \t padded \t ", "Content-Type": "application/json"})
            return connection.getresponse().status

    with proxied(store) as (port, behind, _):
        assert await anyio.to_thread.run_sync(ask, port) == await anyio.to_thread.run_sync(ask, behind) != 502


@pytest.mark.parametrize("json_response", [True, False])
async def test_an_answer_that_is_too_large_to_be_recorded_is_told(
    store: wakelog.Store, monkeypatch: pytest.MonkeyPatch, json_response: bool
) -> None:
    monkeypatch.setattr("wakelog.mcp.http_proxy.BODY_MAX", 1000)
    monkeypatch.setattr("wakelog.codec.lines.LINE_MAX", 1000)
    warned: list[str] = []
    recorder = TrafficRecorder(lambda: store.session("rec"), name="things", warn=warned.append)
    app = things().streamable_http_app(json_response=json_response)
    with serving(app) as behind, serving(HttpProxy(f"http://127.0.0.1:{behind}/mcp", recorder)) as port:
        async with Client(f"http://127.0.0.1:{port}/mcp", mode="auto" if json_response else "legacy") as c:
            assert (await c.call_tool("slow", {"steps": 0})).structured_content == {"result": "é" * 50_000}
    recorder.close()
    what = "an answer of more than 1,000" if json_response else "a message of more than 67,108,864"
    assert f"{what} bytes was passed on but not recorded" in warned
    kinds = [entry.kind for entry in store.session("rec").log.entries()]
    assert "gap.noted" in kinds


async def test_what_a_slow_store_did_not_take_before_the_end_is_told(store: wakelog.Store) -> None:
    warned: list[str] = []
    is_free = threading.Event()

    def slow() -> Any:
        is_free.wait(180)
        return store.session("rec")

    recorder = TrafficRecorder(slow, name="things", warn=warned.append)
    for n in range(3):
        call = {"id": n, "method": "tools/call", "params": {"name": "double", "arguments": {}}}
        recorder.add_frame("client", call)
    recorder.close(timeout_s=0.01)
    assert any("may not be recorded" in text for text in warned)
    is_free.set()
    recorder._thread.join(180)
