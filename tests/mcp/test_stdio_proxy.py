"""The recording proxy over stdio, as a client sees it: the same bytes as without it, whatever happens to the store."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

import wakelog
from tests.mcp.servers import ECHO
from wakelog.cli.app import run as run_cli
from wakelog.cli.commands.mcp import DURABLE_WAIT_S
from wakelog.mcp.recorder import TrafficRecorder
from wakelog.mcp.stdio_proxy import run_proxy

SERVER = [sys.executable, "-c", ECHO]


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def lines(*frames: dict[str, Any] | bytes) -> bytes:
    return b"".join((f if isinstance(f, bytes) else json.dumps(f).encode()) + b"\n" for f in frames)


def proxied(store: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "wakelog", "proxy", "--store", str(store), "--into", "rec", *more, "--", *SERVER]


def run(command: list[str], sent: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, input=sent, capture_output=True, timeout=180, check=False)


TRAFFIC = lines(
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": "list", "method": "tools/list"},
    call(1, "look", size=70_000),
    b'{"jsonrpc" :  "2.0","id":2 ,"method":"x/unknown","params":{"n":1.0, "u":"\\u00e9"}}',
    b"this is not json",
    call(3, "bad"),
    call(4, "broken"),
    call(5, "send", to="ada"),
    {"jsonrpc": "2.0", "method": "say", "params": {"text": "from the server"}},
    {"jsonrpc": "2.0", "id": 6, "method": "resources/read", "params": {"uri": "file:///a"}},
    call(7, "send", to="ada"),
    {"jsonrpc": "2.0", "id": 8, "method": "die", "params": {"code": 41}},
)


def test_bytes_stderr_and_exit_code_are_those_of_the_server(tmp_path: Path) -> None:
    bare, through = run(SERVER, TRAFFIC), run(proxied(tmp_path / "store"), TRAFFIC)
    assert through.stdout == bare.stdout
    assert through.stderr == bare.stderr == b"from the server\n"
    assert through.returncode == bare.returncode == 41


def test_each_tool_call_is_recorded_with_input_outcome_and_trust(tmp_path: Path) -> None:
    with subprocess.Popen(
        proxied(tmp_path / "store"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        proxy.stdin.write(lines({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}))
        proxy.stdout.readline()  # a client knows the tools, and what is said of them, before it calls one
        proxy.stdin.write(TRAFFIC)
        proxy.stdout.read()
    with wakelog.open(tmp_path / "store") as store:
        session = store.resume("rec")
        requests = {e.seq: e.body for e in session.events(kind="action.requested")}
        assert [(r["tool"], r.get("effect", "external")) for r in requests.values()] == [
            ("look", "read"),
            ("bad", "external"),
            ("broken", "external"),
            ("send", "external"),
            ("send", "external"),
        ]
        assert [r["input"] for r in requests.values()][3:] == [{"to": "ada"}, {"to": "ada"}]
        outcomes = [
            e for e in session.events(kind="action") if e.header.cause in requests and e.kind != "action.started"
        ]
        assert [e.kind for e in outcomes] == [
            "action.succeeded",
            "action.failed",
            "action.failed",
            "action.succeeded",
            "action.succeeded",
        ]
        assert {(e.header.trust, e.header.source) for e in outcomes} == {("unverified", "mcp:python")}
        assert outcomes[1].body["error"]["message"] == "bad 2"
        assert outcomes[2].body["error"] == {"type": "rpc:-32602", "message": "no such tool"}
        assert outcomes[3].body["output_summary"] == "send 3"
        assert all(e.body["cost"]["duration_us"] > 0 for e in outcomes)
        assert session.state().working_set.data_sources == {
            "file:///a": session.state().working_set.data_sources["file:///a"]
        }
        assert session.state().pending_actions == {}
        assert session.verify().ok


def test_an_answer_never_overtakes_its_call_however_fast_it_comes(tmp_path: Path) -> None:
    with subprocess.Popen(
        proxied(tmp_path / "store"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        for n in range(300):
            proxy.stdin.write(lines(call(n, "look")))
            proxy.stdout.readline()
        proxy.stdin.close()
    with wakelog.open(tmp_path / "store") as store:
        kinds = [e.kind for e in store.resume("rec").events(kind="action")]
        assert kinds.count("action.succeeded") == kinds.count("action.requested") == 300


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_server_killed_by_a_signal_looks_the_same_through_the_proxy(tmp_path: Path, number: int) -> None:
    killer = [sys.executable, "-c", f"import os, sys; sys.stdin.readline(); os.kill(os.getpid(), {int(number)})"]
    done = run([*proxied(tmp_path / "store")[: -len(SERVER)], *killer], lines(call(1, "send")))
    assert done.returncode == -number
    assert done.stderr == b""
    with wakelog.open(tmp_path / "store") as store:
        pending = store.resume("rec").state().pending_actions
        assert [(p.tool, p.status) for p in pending.values()] == [("send", "uncertain")]


def test_a_call_the_server_never_answered_is_uncertain(tmp_path: Path) -> None:
    sent = lines(
        {"jsonrpc": "2.0", "id": "l", "method": "tools/list"},
        call(1, "send"),
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "hang"}} | {"method": "hang"},
    )
    hang = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"gone"}}\n'
    # The server dies on reading the first frame, so that the call behind it is never answered.
    dead = lines({"jsonrpc": "2.0", "id": 0, "method": "die", "params": {"code": 3}}) + hang
    assert run(proxied(tmp_path / "store"), sent + dead).returncode == 3
    with wakelog.open(tmp_path / "store") as store:
        pending = store.resume("rec").state().pending_actions
        assert [(p.tool, p.status) for p in pending.values()] == [("gone", "uncertain")]


@pytest.mark.parametrize("broken", ["file", "corrupt"])
def test_where_the_store_fails_the_traffic_is_the_same(tmp_path: Path, broken: str) -> None:
    store = tmp_path / "store"
    if broken == "file":
        store.write_text("not a folder")
    else:
        store.mkdir()
        (store / "log.db").write_bytes(b"not a database" * 1000)
    bare, through = run(SERVER, TRAFFIC), run(proxied(store), TRAFFIC)
    assert (through.stdout, through.returncode) == (bare.stdout, bare.returncode)
    assert b"not recorded" in through.stderr


def test_a_gap_is_recorded_when_the_store_is_back(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.write_text("in the way")
    with subprocess.Popen(
        proxied(store), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        assert proxy.stderr is not None
        proxy.stdin.write(lines(call(1, "look")))
        proxy.stdout.readline()
        assert b"not recorded" in proxy.stderr.readline()
        store.unlink()
        proxy.stdin.write(lines(call(2, "send")))
        proxy.stdout.readline()
        proxy.stdin.close()
    with wakelog.open(store) as opened:
        session = opened.resume("rec")
        kinds = [e.kind for e in session.events()]
        assert "gap.noted" in kinds
        assert kinds.count("action.succeeded") >= 1


def test_signals_go_to_the_server_and_its_death_is_ours(tmp_path: Path) -> None:
    with subprocess.Popen(
        proxied(tmp_path / "store"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        proxy.stdin.write(lines(call(1, "look")))
        proxy.stdout.readline()  # it is up, and so are the handlers
        os.kill(proxy.pid, signal.SIGTERM)
        assert proxy.wait(180) == -signal.SIGTERM


def test_durable_calls_are_stored_before_the_server_sees_them(tmp_path: Path) -> None:
    """Run here, with more patience than the command has: on a busy machine a second is over before a store is open."""
    looking = tmp_path / "look.py"
    looking.write_text(
        "import sys, json, wakelog\n"
        "line = json.loads(sys.stdin.readline())\n"
        f"with wakelog.open({str(tmp_path / 'store')!r}) as s:\n"
        "    pending = len(s.resume('rec').state().pending_actions)\n"
        "print(json.dumps({'jsonrpc': '2.0', 'id': line['id'], 'result': {'pending': pending}}), flush=True)\n"
    )
    with wakelog.open(tmp_path / "store") as store, (tmp_path / "sent").open("w+b") as sent:
        sent.write(lines(call(1, "send")))
        sent.seek(0)
        with (tmp_path / "answered").open("w+b") as answered:
            recorder = TrafficRecorder(lambda: store.session("rec"), name="looking")
            command = [sys.executable, str(looking)]
            assert run_proxy(command, recorder, wait_s=300, stdin=sent.fileno(), stdout=answered.fileno()) == 0
    assert json.loads((tmp_path / "answered").read_bytes())["result"] == {"pending": 1}


@pytest.mark.parametrize("flags", [(), ("--durable",)])
def test_only_durable_calls_are_held_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    waits: list[float] = []

    def no_server(command: tuple[str, ...], recorder: TrafficRecorder, *, wait_s: float) -> int:
        waits.append(wait_s)
        return 0

    monkeypatch.setattr("wakelog.mcp.stdio_proxy.run_proxy", no_server)
    assert run_cli(["proxy", "--store", str(tmp_path), *flags, "--", "anything"]) == 0
    assert waits == [DURABLE_WAIT_S if flags else 0.0]


@pytest.mark.parametrize("takes", [1, 0])
def test_a_slow_store_is_waited_for_and_one_that_takes_nothing_is_given_up(store: wakelog.Store, takes: int) -> None:
    class Writer:
        """In place of the thread that writes: `takes` frames in the time that is waited for it."""

        waited = 0

        def is_alive(self) -> bool:
            return not recorder._queue.empty()

        def join(self, timeout_s: float) -> None:
            self.waited += 1
            for _ in range(takes):
                recorder._queue.get()

    recorder = TrafficRecorder(lambda: store.session("rec"), name="slow")
    recorder.close()
    recorder._thread = writer = Writer()  # type: ignore[assignment]
    for n in range(5):
        recorder.add_frame("client", call(n, "send"))
    recorder.close()
    assert (writer.waited, recorder._queue.qsize()) == ((6, 0) if takes else (1, 6))


@pytest.mark.parametrize("tool", ["send", "look"])
def test_an_answer_that_could_not_be_stored_does_not_leave_its_call_open(store: wakelog.Store, tool: str) -> None:
    class Failing:
        """A session that takes no outcome that succeeded."""

        def append(self, *drafts: Any) -> Any:
            if any(isinstance(draft.event, wakelog.events.ActionSucceeded) for draft in drafts):
                raise OSError("the disk is full")
            return store.session("rec").append(*drafts)

    warned: list[str] = []
    recorder = TrafficRecorder(lambda: cast(Any, Failing()), name="full", warn=warned.append)
    tools = [{"name": "look", "annotations": {"readOnlyHint": True}}]
    recorder.add_frame("client", {"jsonrpc": "2.0", "id": 0, "method": "tools/list"})
    recorder.add_frame("server", {"jsonrpc": "2.0", "id": 0, "result": {"tools": tools}})
    recorder.add_frame("client", call(1, tool))
    recorder.add_frame("server", {"jsonrpc": "2.0", "id": 1, "result": {"content": []}})
    recorder.close()
    session = store.resume("rec")
    (said,) = session.events(kind=("action.uncertain", "action.failed"))
    assert said.kind == ("action.uncertain" if tool == "send" else "action.failed")
    assert "the answer came and was not recorded" in str(said.body)
    assert "the disk is full" in warned[0]
    assert [e.body["missed"] for e in session.events(kind="gap.noted")]


def test_a_command_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = run([*proxied(tmp_path / "s")[: -len(SERVER)], "no-such-command-anywhere"], b"")
    assert done.returncode == 3
    assert b"no-such-command-anywhere" in done.stderr
    assert done.stdout == b""


SLOW = r"""
import json, sys
for line in sys.stdin.buffer:
    frame = json.loads(line)
    if frame.get("method") == "tools/call" and frame["params"]["name"] == "slow":
        sys.stdin.buffer.read()  # until the client is gone
    if "id" in frame:
        answer = {"jsonrpc": "2.0", "id": frame["id"], "result": {"content": []}}
        sys.stdout.write(json.dumps(answer) + "\n"); sys.stdout.flush()
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "clientInfo": {"name": "codex", "version": "1.2"}},
}


def passed_through(store: wakelog.Store, *frames: dict[str, Any], dies: bool) -> wakelog.Session:
    """What is recorded of a client that asks, and then closes its side, or both as one does that is killed."""
    up, down = os.pipe(), os.pipe()
    os.write(up[1], lines(*frames))
    if dies:
        os.close(down[0])
    os.close(up[1])
    recorder = TrafficRecorder(lambda: store.session("rec"), name="slow")
    run_proxy([sys.executable, "-c", SLOW], recorder, stdin=up[0], stdout=down[1])
    for end in (up[0], down[1], *(() if dies else (down[0],))):
        os.close(end)
    return store.resume("rec")


def test_an_answer_that_came_when_the_client_was_gone_says_that_nobody_got_it(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        session = passed_through(store, HELLO, call(1, "fast"), call(2, "slow"), dies=True)
        (connected,) = session.events(kind="x.mcp.connected")
        assert (connected.body["client"], connected.body["version"]) == ("codex", "1.2")
        (left,) = session.events(kind="x.mcp.left")
        assert left.body["client"] == "codex"
        assert "codex 1.2 left" in left.body["why"]
        outcomes = list(session.events(kind="action.succeeded"))
        noted = {e.body["on"]: e.body["text"] for e in session.events(kind="note.added")}
        told = [str(e.body.get("why") or noted.get(e.seq, "")) for e in outcomes]
        assert len(told) == 2
        assert all("codex 1.2 never got this answer" in each for each in told)


def test_a_client_that_closes_its_side_has_left_and_its_last_answer_may_be_unread(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        session = passed_through(store, HELLO, call(1, "slow"), dies=False)
        (left,) = session.events(kind="x.mcp.left")
        (outcome,) = session.events(kind="action.succeeded")
        # It asked, closed, and was answered into a pipe that was still open: it may have read that.
        assert left.body["unanswered"] == [outcome.body["action"]]
        assert "never got" not in str(outcome.body)
        assert list(session.events(kind="note.added")) == []


def test_a_client_that_only_looks_makes_no_session(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        with pytest.raises(wakelog.NotFoundError):
            passed_through(store, HELLO, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, dies=False)
        assert list(store.sessions()) == []
