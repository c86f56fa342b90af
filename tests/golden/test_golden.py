"""Logs that were written once and must be readable for ever, by us and without us."""

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import rfc8785

from tests.golden.make import GOLDEN, made, told_by
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.log import Log
from wakelog.log.bundle import export_bundle, import_bundle
from wakelog.log.verify import verify
from wakelog.model.events import KINDS, FactRecorded

FOLDER = Path(__file__).parent
BUNDLES = sorted(FOLDER.glob("v*/*.ndjson"))
golden = pytest.mark.parametrize("path", BUNDLES, ids=lambda path: f"{path.parent.name}-{path.stem}")


def told(path: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return expected


def test_there_are_golden_logs_of_every_version() -> None:
    assert {path.parent.name for path in BUNDLES} >= {"v1"}
    assert {path.stem for path in BUNDLES if path.parent.name == "v1"} >= {"every-kind", "forked", "removed"}


def test_the_golden_logs_hold_every_kind() -> None:
    kinds = {kind for path in BUNDLES for kind in told(path)["kinds"]}
    # A deleted session leaves nothing to put into a bundle.
    assert kinds >= set(KINDS) - {"session.deleted"}
    assert any(kind not in KINDS for kind in kinds)


@golden
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_golden_log_is_what_it_always_was(path: Path, kind: str, tmp_path: Path) -> None:
    engine: Engine = MemoryEngine() if kind == "memory" else SqliteEngine(tmp_path / "log.db")
    data = path.read_bytes()
    log = import_bundle(engine, io.BytesIO(data))
    again = json.loads(json.dumps(told_by(log)))
    expected = told(path)
    for part in expected:
        assert again[part] == expected[part], part
    out = io.BytesIO()
    export_bundle(log, out, beyond=True)
    assert out.getvalue() == data
    engine.drop_snapshots(log.id)
    assert Log(engine, log.id).state() == expected["state"]
    log.append(FactRecorded(key="today", value="still writable"))
    assert verify(log).ok
    engine.close()


def test_the_generator_gives_the_same_bytes_each_time() -> None:
    """What it writes may differ from the golden files: effects and state may grow. What they say may not change."""
    for number, build in enumerate(GOLDEN.values()):
        assert made(number, build) == made(number, build)


# Without us: SHA-256, base64, JSON and JSON Patch, as docs/reference/format.md has it.


@golden
def test_a_golden_log_can_be_read_without_us(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    end = json.loads(lines[-1])
    assert end == {"end": len(lines) - 1, "sha256": hashlib.sha256(b"".join(lines[:-1])).hexdigest()}
    first, *commits = map(json.loads, lines[:-1])
    chain = _chain_of(first)
    state: Any = None
    prev = bytes(32).hex()
    for session, last in chain:
        for commit in (c for c in commits if c["session"] == session):
            if last is not None and commit["first"] > last:
                break
            assert commit["prev"] == prev
            for header_text, salt, body in commit["records"]:
                header = json.loads(header_text)
                if last is not None and header["seq"] > last:
                    break
                prev = hashlib.sha256(bytes.fromhex(prev) + header_text.encode()).hexdigest()
                if salt:
                    assert header["body_hash"] == hashlib.sha256(bytes.fromhex(salt) + body.encode()).hexdigest()
                if not body:
                    state = _base_at(commits, session, header["seq"], state)
                elif "delta" in (fields := json.loads(body)):
                    state = jsonpatch.apply_patch(state or {}, fields["delta"])
    expected = told(path)
    assert prev == expected["head_hash"]
    assert state == expected["state"]
    assert _state_hash(state) == expected["state_hash"]


def _chain_of(first: dict[str, Any]) -> list[tuple[str, int | None]]:
    """The sessions of a history, oldest first, with the last event taken from each."""
    forks = {s["session"]: s.get("fork") for s in first["segments"]}
    chain: list[tuple[str, int | None]] = [(first["session"], None)]
    while fork := forks[chain[0][0]]:
        last = chain[0][1]
        chain.insert(0, (fork["parent"], fork["at"] if last is None else min(fork["at"], last)))
    return chain


def _base_at(commits: list[dict[str, Any]], session: str, seq: int, state: Any) -> Any:
    """The base state, once the walk has come to the end of what the newest prune took."""
    for commit in reversed([c for c in commits if c["session"] == session]):
        for header, _, body in reversed(commit["records"]):
            if body and json.loads(header)["kind"] == "range.pruned":
                fields = json.loads(body)
                if fields["upto"] == seq:
                    return json.loads(base64.b64decode(commit["payloads"][fields["base"]["$payload"]]))
                return state
    raise AssertionError(f"event {seq} has no body, and nothing says it was pruned")


def _state_hash(state: dict[str, Any]) -> str:
    leaves: list[bytes] = []

    def add(pointer: str, value: Any, deeper: int) -> None:
        opened = isinstance(value, dict) and deeper != 0
        leaves.append(rfc8785.dumps([pointer, {} if opened else value]))
        if opened:
            for key, inner in value.items():
                add(f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", inner, deeper - 1)

    leaves.append(rfc8785.dumps(["", {}]))
    depths = {"status": 0, "turn": 0, "lease": 0, "goal": 0, "last_error": 0, "working_set": 2, "data": -1}
    for part, value in state.items():
        if part != "view":
            add(f"/{part}", value, depths.get(part, 1))
    total = sum(int.from_bytes(hashlib.shake_256(leaf).digest(512), "little") for leaf in leaves) % (1 << 4096)
    return hashlib.sha256(total.to_bytes(512, "little")).hexdigest()
