"""The TypeScript client, by its own tests against a real server; and built for publishing, on the Node that is here."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node import CLIENT, NODE
from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings

SMOKE = """
import { Client, readBundle } from "./dist/index.js";
const client = new Client(process.env.WAKELOG_URL, { key: process.env.WAKELOG_KEY });
const session = await client.open("built");
await session.append({ kind: "fact.recorded", body: { key: "a", value: 1 } });
const report = await readBundle(await session.bundle());
console.log(report.head_hash === (await session.head()).hash);
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(Settings(url=str(tmp_path / "store"), rate=0)) as running:
        yield running


def run(command: list[str], server: RunningServer | None = None, cwd: Path = CLIENT) -> str:
    env = dict(os.environ)
    if server is not None:
        env |= {"WAKELOG_URL": server.url, "WAKELOG_KEY": server.key}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_tests_against_a_server(server: RunningServer) -> None:
    told = run([NODE, "--test", "--test-reporter=spec", "test/client.test.ts"], server)
    assert "fail 0" in told
    assert "skipped 0" in told


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed: the client is not built")
def test_types_and_the_built_package(server: RunningServer, tmp_path: Path) -> None:
    folder = tmp_path / "client"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder)
    run(["npm", "run", "check"], cwd=folder)
    run(["npm", "run", "build"], cwd=folder)
    (folder / "smoke.mjs").write_text(SMOKE)
    assert run(["node", "smoke.mjs"], server, cwd=folder).strip() == "true"
