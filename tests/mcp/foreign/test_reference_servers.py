"""The reference servers behind the stdio proxy, driven by the official client: as bare, and recorded."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

import wakelog
from tests.mcp.foreign.packages import Packages
from tests.mcp.foreign.processes import WAKELOG

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

Call = tuple[str, dict[str, Any], bool]
"""A tool, its arguments, and whether it succeeds."""


def filesystem(packages: Packages, folder: Path) -> tuple[list[str], list[Call]]:
    file = str(folder / "é.txt")
    return packages.server("filesystem", str(folder)), [
        ("write_file", {"path": file, "content": "eins\nzwei é\n"}, True),
        ("read_text_file", {"path": file}, True),
        ("edit_file", {"path": file, "edits": [{"oldText": "eins", "newText": "uno"}]}, True),
        ("list_directory", {"path": str(folder)}, True),
        ("read_text_file", {"path": "/etc/passwd"}, False),
    ]


def memory(packages: Packages, folder: Path) -> tuple[list[str], list[Call]]:
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote a program"]}
    return ["env", f"MEMORY_FILE_PATH={folder / 'memory.jsonl'}", *packages.server("memory")], [
        ("create_entities", {"entities": [ada]}, True),
        ("search_nodes", {"query": "program"}, True),
        ("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]}, False),
        ("read_graph", {}, True),
    ]


def everything(packages: Packages, folder: Path) -> tuple[list[str], list[Call]]:
    return packages.server("everything", "stdio"), [
        ("echo", {"message": "hallo é \u202e \x1b[31m"}, True),
        ("get-sum", {"a": 2, "b": 40}, True),
        ("get-tiny-image", {}, True),
        ("get-structured-content", {"location": "Chicago"}, True),
        ("get-sum", {"a": "x"}, False),
    ]


def git(packages: Packages, folder: Path) -> tuple[list[str], list[Call]]:
    run = ["git", "-c", "init.defaultBranch=main", "-C", str(folder)]
    subprocess.run([*run, "init", "-q"], check=True)
    (folder / "a.txt").write_text("a\n")
    who = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com", "GIT_AUTHOR_DATE": "1767225600 +0000"}
    who |= {k.replace("AUTHOR", "COMMITTER"): v for k, v in who.items()}
    path = {"repo_path": str(folder)}
    server = ["env", *(f"{k}={v}" for k, v in who.items()), sys.executable, "-m", "mcp_server_git"]
    return [*server, "--repository", str(folder)], [
        ("git_status", path, True),
        ("git_add", {**path, "files": ["a.txt"]}, True),
        ("git_commit", {**path, "message": "first"}, True),
        ("git_log", path, True),
        ("git_show", {**path, "revision": "no-such-thing"}, False),
    ]


def clock(packages: Packages, folder: Path) -> tuple[list[str], list[Call]]:
    noon = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return [sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"], [
        ("convert_time", noon, True),
        ("convert_time", {**noon, "time": "25:99"}, False),
        ("convert_time", {**noon, "target_timezone": "Nowhere/At_All"}, False),
    ]


SERVERS: dict[str, Callable[[Packages, Path], tuple[list[str], list[Call]]]] = {
    "filesystem": filesystem,
    "memory": memory,
    "everything": everything,
    "git": git,
    "time": clock,
}


def started_by(command: list[str]) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=command[1:], env={"PATH": os.environ["PATH"]})


async def talk(command: list[str], calls: list[Call], mode: str) -> list[Any]:
    """Everything a client learns: the server, its tools, and what each call answers."""
    said: list[Any] = []
    async with Client(started_by(command), mode=mode) as c:
        listed = await c.list_tools()
        said.append(sorted(t.model_dump_json() for t in listed.tools))
        for tool, arguments, _ in calls:
            try:
                said.append((await c.call_tool(tool, arguments)).model_dump(mode="json"))
            except MCPError as exc:
                said.append({"error": str(exc), "is_error": True})
    return said


@pytest.mark.parametrize("name", SERVERS)
async def test_calls_answer_as_without_the_proxy_and_are_recorded(
    packages: Packages, tmp_path: Path, name: str
) -> None:
    answers = []
    folder = tmp_path / "work"
    store = tmp_path / "store"
    for before in ([], [*WAKELOG, "proxy", "--store", str(store), "--name", name, "--into", "rec", "--"]):
        folder.mkdir()
        command, calls = SERVERS[name](packages, folder)
        with anyio.fail_after(120):
            answers.append(await talk([*before, *command], calls, "legacy"))
        folder.rename(tmp_path / f"work-{len(answers)}")
    bare, through = answers
    assert _without_time(through) == _without_time(bare)
    assert [not a["is_error"] for a in through[1:]] == [succeeds for _, _, succeeds in calls]

    with wakelog.open(store) as opened:
        session = opened.resume("rec")
        asked = list(session.events(kind="action.requested"))
        assert [(e.body["tool"], session.log.value(e, e.body.get("input") or {})) for e in asked] == [
            (t, a) for t, a, _ in calls
        ]
        ended = {e.body["action"]: e for e in session.events(kind=("action.succeeded", "action.failed"))}
        outcomes = [ended[e.body["action"]] for e in asked]
        assert [e.kind == "action.succeeded" for e in outcomes] == [succeeds for _, _, succeeds in calls]
        assert {(e.header.trust, e.header.source) for e in outcomes} == {("unverified", f"mcp:{name}")}
        assert session.state().pending_actions == {}
        assert session.verify().ok


def _without_time(said: list[Any]) -> Any:
    """Two runs may see two dates, on a file or in the zone's day; nothing else differs."""
    return json.loads(json.dumps(said).replace(datetime.now(UTC).date().isoformat(), "TODAY"))


async def test_a_server_killed_under_a_call_is_told_and_recorded(packages: Packages, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    server = ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(pid), *packages.server("everything", "stdio")]
    command = [*WAKELOG, "proxy", "--store", str(tmp_path / "store"), "--into", "rec", "--", *server]
    under_way = anyio.Event()

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        under_way.set()

    async def kill() -> None:
        await under_way.wait()
        os.kill(int(pid.read_text()), signal.SIGKILL)

    with anyio.fail_after(90):
        async with Client(started_by(command), mode="legacy") as c:
            assert not (await c.call_tool("echo", {"message": "before"})).is_error
            async with anyio.create_task_group() as group:
                group.start_soon(kill)
                arguments = {"duration": 60, "steps": 60}
                with pytest.raises(MCPError):
                    await c.call_tool("trigger-long-running-operation", arguments, progress_callback=progress)
    with wakelog.open(tmp_path / "store") as opened:
        session = opened.resume("rec")
        # The server says that this tool only reads, so the call is simply over; any other would be uncertain.
        failed = [e.body["error"]["type"] for e in session.events(kind="action.failed")]
        assert (failed, session.state().pending_actions) == (["interrupted"], {})
        assert session.verify().ok
