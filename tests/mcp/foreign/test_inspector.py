"""The MCP inspector's command line as a client of ours, over stdio, over HTTP and through the proxy."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.mcp.foreign.packages import Packages
from tests.mcp.foreign.processes import WAKELOG, listening
from tests.ports import free_port
from wakelog.mcp.tools import READING, WRITING

pytestmark = pytest.mark.slow
ways = pytest.mark.parametrize("way", ["stdio", "http", "proxy"])


@contextmanager
def target(way: str, store: Path) -> Iterator[list[str]]:
    """What the inspector is told to connect to."""
    server = [*WAKELOG, "mcp", "--store", str(store)]
    if way == "http":
        port = free_port()
        with listening([*server, "--http", f"127.0.0.1:{port}"], port):
            yield [f"http://127.0.0.1:{port}/mcp"]
    elif way == "proxy":
        yield [*WAKELOG, "proxy", "--store", str(store.with_name("record")), "--into", "rec", "--", *server]
    else:
        yield server


def inspect(packages: Packages, home: Path, where: list[str], *options: str) -> tuple[int, Any, str]:
    # Its options stand first and -- ends them, so that the command's own are not taken for the inspector's.
    command = [*packages.inspector, *options, "--", *where]
    environment = {"HOME": str(home), "PATH": str(Path(packages.node).parent) + ":/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    try:
        return done.returncode, json.loads(done.stdout), done.stderr
    except ValueError:
        return done.returncode, done.stdout, done.stderr


@ways
def test_it_lists_calls_and_reads(packages: Packages, tmp_path: Path, way: str) -> None:
    with target(way, tmp_path / "store") as where:

        def ask(*options: str) -> Any:
            code, said, err = inspect(packages, tmp_path, where, *options)
            assert code == 0, (said, err)
            return said

        tools = {t["name"] for t in ask("--method", "tools/list", "--strict")["tools"]}
        assert tools == {*READING, *WRITING}
        opened = ask("--method", "tools/call", "--tool-name", "open_session", "--tool-arg", "name=fix", "goal=mend it")
        assert json.loads(opened["content"][0]["text"])["is_new"]
        read = ask("--method", "resources/read", "--uri", "wakelog://fix/state")
        assert json.loads(read["contents"][0]["text"])["goal"] == "mend it"
        assert {p["name"] for p in ask("--method", "prompts/list")["prompts"]} == {"keep_session", "resume_session"}
        code, said, err = inspect(
            packages, tmp_path, where, "--method", "tools/call", "--tool-name", "brief", "--tool-arg", "session_id=gone"
        )
        assert "session-not-found" in json.dumps(said) + err
        assert code != 0 or said["isError"]
    with wakelog.open(tmp_path / "store") as store:
        assert store.resume("fix").state().goal == "mend it"
    if way == "proxy":
        with wakelog.open(tmp_path / "record") as store:
            kinds = [e.kind for e in store.resume("rec").events(kind="action")]
            assert kinds.count("action.succeeded") == 1
            assert kinds.count("action.failed") == 1
