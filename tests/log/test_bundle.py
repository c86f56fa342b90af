"""Bundles: what leaves a store comes back the same, once; what was tampered with does not come in at all."""

import gzip
import hashlib
import io
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import wakelog
from tests.log.conftest import NewLog
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import ConflictError, NotAllowedError, WakelogError
from wakelog.log import Log, bundle
from wakelog.log.bundle import export_bundle, import_bundle
from wakelog.log.removal import delete, erase, prune
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.testing.builders import fact, message, new_session

BIG = "larger than what stays in a body " * 40


def exported(log: Log, *, beyond: bool = False) -> bytes:
    out = io.BytesIO()
    head = export_bundle(log, out, beyond=beyond)
    assert head == log.head()
    return out.getvalue()


def imported(data: bytes, engine: Engine | None = None) -> Log:
    return import_bundle(engine or MemoryEngine(), io.BytesIO(data))


def contents(engine: Engine) -> list[Any]:
    """Everything an engine holds, to see that nothing changed."""
    sessions = [head.session for head in engine.sessions(limit=1000)]
    return [(engine.head(s), list(engine.read(s, payloads=True)), engine.snapshot(s, upto=1 << 40)) for s in sessions]


@pytest.fixture
def lived(new_log: NewLog) -> Log:
    """A session with payloads, a rewind, turns, an erasure and a prune."""
    log = new_log(message(BIG), fact("a", "é\u0000\U0001f600"), ev.TurnStarted(), message(BIG), goal="g")
    log.append(ev.FileChanged(path="f"), fact("b", 2), commit_id="mine")
    log.append(ev.TurnEnded())
    log.rewind(5)
    log.append(fact("secret", "x"))
    erase(log, [10])
    prune(log, 2)
    log.append(ev.LeaseTaken(epoch=1, holder="w"))
    return log


def test_what_comes_in_is_what_went_out(lived: Log, engine: Engine) -> None:
    again = imported(exported(lived))
    assert again.id == lived.id
    assert again.state() == lived.state()
    assert again.state_hash() == lived.state_hash()
    assert [e.record for e in again.entries()] == [e.record for e in lived.entries()]
    entry = again.entry(5)
    assert again.value(entry, entry.body["content"]) == BIG
    assert verify(again).ok
    assert exported(again) == exported(lived)
    again.append(fact("more"))
    assert verify(again).ok


def test_a_bundle_can_be_taken_in_by_another_kind_of_engine(lived: Log, engine: Engine) -> None:
    data = exported(lived)
    other = imported(exported(imported(data)), MemoryEngine())
    assert exported(other) == data


def test_names_and_chosen_ids_travel_along(lived: Log) -> None:
    lived.engine.claim("checkout", lived.id)
    again = imported(exported(lived))
    assert again.engine.find("checkout") == lived.id
    log = imported(exported(lived))
    log.append(fact("new"), commit_id="other")
    again = imported(exported(log))
    assert again.append(fact("new"), commit_id="other").seq == log.head().seq


@pytest.mark.parametrize("name", ["mine", "forked"])
def test_a_bundle_cannot_give_a_session_another_name(name: str) -> None:
    with wakelog.open("memory:") as store:
        fork = store.session("mine").fork(name="forked")
        *lines, _ = exported(fork.log).splitlines(keepends=True)
    lines[0] = lines[0].replace(f'"name":"{name}"'.encode(), b'"name":"hers"')
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    engine = MemoryEngine()
    log = imported(b"".join(lines) + json.dumps({"end": len(lines), "sha256": digest}).encode() + b"\n", engine)
    assert log.id == fork.id
    assert engine.find("hers") is None
    assert engine.find(name) is None
    assert engine.find("forked" if name == "mine" else "mine") is not None


def test_a_fork_brings_its_ancestry(new_log: NewLog) -> None:
    log = new_log(fact("a"), message(BIG), fact("b"))
    log.append(fact("c"), fact("d"))
    fork = log.fork(5).fork(6)
    fork.append(message(BIG))
    log.append(fact("not for the fork"))
    again = imported(exported(fork))
    assert again.state() == fork.state()
    assert [e.hash for e in again.entries()] == [e.hash for e in fork.entries()]
    assert verify(again).ok
    assert exported(again) == exported(fork)


def test_a_fork_of_a_parent_that_was_pruned_later_comes_in_whole(new_log: NewLog) -> None:
    log = new_log(*(fact(f"k{i}") for i in range(8)))
    fork = log.fork(7)
    fork.append(fact("own"))
    prune(log, 4)
    with pytest.raises(NotAllowedError) as refused:  # what the parent did since stands before the prune
        exported(fork)
    assert refused.value.kind == "not-shared"
    again = imported(exported(fork, beyond=True))
    assert again.state() == fork.state()
    assert verify(again).ok
    assert verify(again).uncovered == 4, "only the parent vouches for what it pruned after the fork"
    assert verify(log).uncovered == 0


def test_a_prune_right_after_the_fork_travels_with_it(new_log: NewLog) -> None:
    log = new_log(*(fact(f"k{i}") for i in range(6)))
    fork = log.fork()
    prune(log, 4)
    again = imported(exported(fork))
    assert again.state() == fork.state()
    assert verify(again).ok


def test_nothing_past_the_fork_point_leaves_with_a_fork(new_log: NewLog) -> None:
    private = "only the parent's " * 60
    log = new_log(message("said before " * 60))
    log.append(
        fact("shared", 1),
        ev.FileChanged(path="shared.py"),
        ev.FileChanged(path="private.py"),
        message(private),
        commit_id="one append",
    )
    log.append(fact("private", private))
    fork = log.fork(4)  # in the middle of that append
    fork.append(message("said before " * 60), fact("own", 2))
    data = exported(fork)
    lines = [json.loads(line) for line in data.splitlines()]
    assert [(line["first"], line["last"]) for line in lines[1:-1]] == [(1, 1), (2, 2), (3, 4), (5, 5), (6, 7)]
    assert "private" not in data.decode()
    assert len({digest for line in lines[1:-1] for digest in line.get("payloads", {})}) == 1
    again = imported(data)
    assert verify(again).ok
    assert again.state() == fork.state()
    assert Log(again.engine, log.id).head().seq == 4
    assert verify(Log(again.engine, log.id)).ok


@pytest.mark.parametrize("parent_first", [True, False])
def test_a_fork_and_its_parent_come_in_in_any_order(new_log: NewLog, parent_first: bool) -> None:
    big = "some words " * 100
    log = new_log(message(big))
    log.append(fact("a"), message(big + "2"), fact("b"), message(big + "2"), message(big + "3"))
    fork = log.fork(4)
    log.append(fact("c"))
    target = MemoryEngine()
    bundles = [exported(log), exported(fork)]
    for data in bundles if parent_first else bundles[::-1]:
        imported(data, target)
    for each in (log, fork):
        again = Log(target, each.id)
        assert verify(again).ok
        assert again.state() == each.state()
        assert [e.hash for e in again.entries()] == [e.hash for e in each.entries()]
        for entry in again.entries():
            assert again.value(entry, entry.body.get("content")) == each.value(entry, entry.body.get("content"))
    for data in bundles:
        before = contents(target)
        imported(data, target)
        assert contents(target) == before


def test_a_parent_that_does_not_fit_on_the_part_its_fork_brought_is_refused(new_log: NewLog) -> None:
    big = "some words " * 100
    log = new_log()
    log.append(fact("a"), fact("b"), message(big))
    fork = log.fork(2)
    log.append(message(big))  # which mentions that append by its first event
    target = MemoryEngine()
    imported(exported(fork), target)
    before = contents(target)
    with pytest.raises(ConflictError) as refused:
        imported(exported(log), target)
    assert refused.value.kind == "kept-in-parts"
    assert contents(target) == before


def test_an_erasure_reaches_a_parent_by_the_bundle_of_its_fork(new_log: NewLog) -> None:
    secret = "hunter2 " * 100
    log = new_log()
    log.append(message(secret), fact("a"), message("kept " * 100))
    fork = log.fork(3)
    target = MemoryEngine()
    for each in (log, fork):
        imported(exported(each), target)
    erase(log, [2])
    imported(exported(fork), target)
    for commit in target.read(log.id, payloads=True):
        assert b"hunter2" not in b"".join(r.body for r in commit.records)
        assert all(b"hunter2" not in content for _, content in commit.payloads)
    assert verify(Log(target, fork.id)).ok
    parent = Log(target, log.id)
    entry = parent.entry(4)
    assert parent.value(entry, entry.body["content"]) == "kept " * 100


def test_a_fork_of_a_deleted_parent_comes_in_whole(new_log: NewLog) -> None:
    log = new_log(fact("a"), fact("b"))
    fork = log.fork(2)
    delete(log)
    again = imported(exported(fork))
    assert again.state() == fork.state()
    assert verify(again).ok


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: data])
def test_a_zipped_bundle_is_taken_in_like_a_plain_one(lived: Log, pack: Callable[[bytes], bytes]) -> None:
    assert imported(pack(exported(lived))).state() == lived.state()


def test_taking_in_what_is_there_changes_nothing(lived: Log) -> None:
    data = exported(lived)
    for engine in (lived.engine, MemoryEngine()):
        imported(data, engine)
        before = contents(engine)
        imported(data, engine)
        assert contents(engine) == before


def test_taking_in_an_older_bundle_changes_nothing(new_log: NewLog) -> None:
    log = new_log(fact("a"))
    data = exported(log)
    log.append(fact("b"))
    before = contents(log.engine)
    assert imported(data, log.engine).head().seq == 3
    assert contents(log.engine) == before


def test_taking_in_a_newer_bundle_goes_on_where_it_was(new_log: NewLog) -> None:
    log = new_log(fact("a"))
    target = MemoryEngine()
    imported(exported(log), target)
    log.append(fact("b"), message(BIG))
    again = imported(exported(log), target)
    assert again.state() == log.state()
    assert verify(again).ok


def test_a_session_that_went_another_way_is_a_conflict(new_log: NewLog) -> None:
    log = new_log(fact("a"))
    target = MemoryEngine()
    other = imported(exported(log), target)
    other.append(fact("one way"))
    log.append(fact("another"))
    log.append(fact("and more"))
    before = contents(target)
    with pytest.raises(ConflictError):
        imported(exported(log), target)
    assert contents(target) == before


def test_a_deleted_session_is_not_brought_back_by_a_bundle(new_log: NewLog) -> None:
    log = new_log(fact("a"))
    data = exported(log)
    delete(log)
    with pytest.raises(NotAllowedError):
        imported(data, log.engine)
    assert log.engine.head(log.id).status == "deleted"


def test_an_erasure_reaches_a_copy_that_was_taken_before_it(new_log: NewLog) -> None:
    log = new_log(fact("a", "SECRET-MARKER"), fact("b"))
    target = MemoryEngine()
    imported(exported(log), target)
    erase(log, [2])
    again = imported(exported(log), target)
    assert verify(again).ok
    assert "SECRET-MARKER" not in repr(again.state())
    assert all(b"SECRET-MARKER" not in e.record.body for e in again.entries())
    target.drop_snapshots(again.id)
    assert Log(target, again.id).state() == log.state()


def test_a_prune_leaves_a_copy_that_was_taken_before_it_whole(new_log: NewLog) -> None:
    log = new_log(fact("a"), fact("b"), fact("c"))
    target = MemoryEngine()
    imported(exported(log), target)
    prune(log, 3)
    again = imported(exported(log), target)
    assert verify(again).ok
    assert again.state() == log.state()


def test_a_closed_session_travels(new_log: NewLog) -> None:
    log = new_log(fact("a"), ev.SessionClosed(), ev.NoteAdded(text="after"))
    assert imported(exported(log)).state() == log.state()


# Tampering. A careless hand changes bytes; a careful one makes the end line fit again, and a very careful one the
# chain.


def sealed_again(lines: list[bytes]) -> bytes:
    """Lines with an end line that fits them."""
    body = b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
    end = {"end": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


def rechained(commit: dict[str, Any], prev: str | None = None) -> dict[str, Any]:
    """A commit line whose hashes are right for the records it has."""
    commit = dict(commit, prev=commit["prev"] if prev is None else prev)
    chain = bytes.fromhex(commit["prev"])
    records = []
    for header, salt, body in commit["records"]:
        fields = json.loads(header)
        fields["body_hash"] = hashlib.sha256(bytes.fromhex(salt) + body.encode()).hexdigest()
        header = json.dumps(fields, separators=(",", ":"))
        chain = hashlib.sha256(chain + header.encode()).digest()
        records.append([header, salt, body])
    return dict(commit, records=records, hash=chain.hex())


def refused_untouched(data: bytes, target: Engine | None = None) -> WakelogError:
    target = target or MemoryEngine()
    before = contents(target)
    with pytest.raises(WakelogError) as refused:
        imported(data, target)
    assert contents(target) == before
    return refused.value


@pytest.fixture
def small() -> bytes:
    log = Log.create(MemoryEngine(), new_session(), ev.SessionOpened())
    for event in (fact("a"), message(BIG)):
        log.append(event)
    log.append(fact("b"), ev.FileChanged(path="f"))
    return exported(log.fork())


@pytest.mark.parametrize("data", [b"", b"\n", b"{}", b"{}\n{}\n{}", b"\x1f\x8b", b"\xff" * 50, b"null\nnull\nnull\n"])
def test_what_is_no_bundle_is_refused(data: bytes) -> None:
    assert refused_untouched(data).kind == "bad-bundle"


def test_a_cut_bundle_is_refused_wherever_it_is_cut(small: bytes) -> None:
    lines = small.splitlines(keepends=True)
    for count in range(len(lines)):
        refused_untouched(b"".join(lines[:count]))
    packed = gzip.compress(small)
    for size in range(0, len(packed) - 1, 97):
        refused_untouched(packed[:size])


def test_random_damage_is_refused_and_nothing_is_taken_in(small: bytes) -> None:
    engine = MemoryEngine()
    for seed in range(300):
        rng = random.Random(seed)
        data = bytearray(small)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            choice = rng.random()
            if choice < 0.5:
                data[at] ^= 1 << rng.randrange(8)
            elif choice < 0.75:
                del data[at : at + rng.randint(1, 20)]
            else:
                data[at:at] = rng.randbytes(rng.randint(1, 5))
        if bytes(data) != small:
            refused_untouched(bytes(data), engine)


def test_lines_lost_doubled_or_changed_about_are_refused_although_the_end_fits(small: bytes) -> None:
    lines = small.splitlines(keepends=True)[:-1]
    for i in range(1, len(lines)):
        refused_untouched(sealed_again(lines[:i] + lines[i + 1 :]))
        for j in range(i + 1, len(lines)):
            swapped = list(lines)
            swapped[i], swapped[j] = swapped[j], swapped[i]
            refused_untouched(sealed_again(swapped))


def test_random_damage_with_a_fitting_end_line_is_refused_or_means_the_same(small: bytes) -> None:
    """Single characters of the JSON change, and everything around is made to fit. Only our own errors come out."""
    lines = small.splitlines(keepends=True)[:-1]
    log = imported(small)
    for seed in range(400):
        rng = random.Random(seed)
        changed = list(lines)
        which = rng.randrange(len(changed))
        line = bytearray(changed[which])
        at = rng.randrange(len(line) - 1)
        line[at] = rng.choice(b'0123456789abcdef{}[]",:-.eE\\ntrue')
        changed[which] = bytes(line)
        engine = MemoryEngine()
        try:
            again = imported(sealed_again(changed), engine)
        except WakelogError:
            assert contents(engine) == [], f"seed {seed}"
            continue
        # What nothing vouches for may differ: names and ids of commits. What was recorded may not.
        if again.id == log.id:
            assert [e.record.body for e in again.entries()] == [e.record.body for e in log.entries()], f"seed {seed}"


MUTATIONS: list[Callable[[random.Random, dict[str, Any]], None]] = [
    lambda rng, c: c.update({rng.choice(list(c)): _odd(rng)}),
    lambda rng, c: c.update({rng.choice(["first", "last", "at", "turn", "epoch"]): rng.choice([-1, 0, 2**63, 2**80])}),
    lambda rng, c: c.pop(rng.choice(list(c))),
    lambda rng, c: _change_header(rng, c),
    lambda rng, c: _change_body(rng, c),
    lambda rng, c: _change_delta(rng, c),
    lambda rng, c: c["records"].append(rng.choice(c["records"])),
    lambda rng, c: c["records"].pop(),
    lambda rng, c: c.update(payloads={"zz": "!!"}),
    lambda rng, c: c.update(payloads={"00" * 32: "AAAA"}),
]


def _odd(rng: random.Random) -> Any:
    return rng.choice([None, True, -1, 0, 2**53, 2**70, 1.5, "", "x", "é\u0000", [], [1], {}, {"a": None}, "00" * 32])


def _change_header(rng: random.Random, commit: dict[str, Any]) -> None:
    record = rng.choice(commit["records"])
    fields = json.loads(record[0])
    name = rng.choice([*fields, "actor", "cause", "derived_from", "trust", "v", "new"])
    fields[name] = _odd(rng)
    record[0] = json.dumps(fields)


def _change_body(rng: random.Random, commit: dict[str, Any]) -> None:
    record = rng.choice(commit["records"])
    body = json.loads(record[2]) if record[2] else {}
    name = rng.choice([*body, "path", "erased", "upto", "base", "to", "delta", "content"])
    body[name] = _odd(rng)
    record[2] = rng.choice([json.dumps(body)] * 6 + ["", "{", "[]", "null"])
    if rng.random() < 0.3:
        fields = json.loads(record[0])
        fields["kind"] = rng.choice(sorted(ev.KINDS))
        record[0] = json.dumps(fields)
        commit["kinds"] = [*commit["kinds"], fields["kind"]]


def _change_delta(rng: random.Random, commit: dict[str, Any]) -> None:
    record = rng.choice(commit["records"])
    body = json.loads(record[2]) if record[2] else {}
    op = {
        "op": rng.choice(["add", "remove", "replace", "move", "test", "", None]),
        "path": rng.choice(
            ["", "/", "/data", "/status", "/turn", "/turn/number", "/lease", "/facts", "/view", "/x/y", 5]
        ),
        "value": _odd(rng),
    }
    for name in list(op):
        if rng.random() < 0.1:
            del op[name]
    body["delta"] = [*body.get("delta", []), op] if rng.random() < 0.9 else _odd(rng)
    record[2] = json.dumps(body)


@pytest.mark.parametrize("block", range(4))
def test_well_made_nonsense_with_right_hashes_never_crashes(small: bytes, block: int, tmp_path: Any) -> None:
    """A very careful hand: changed commits, rehashed and chained on. What is taken in verifies and can be read."""
    lines = [json.loads(line) for line in small.splitlines()[:-1]]
    for seed in range(block * 150, block * 150 + 150):
        rng = random.Random(seed)
        changed = json.loads(json.dumps(lines))
        for _ in range(rng.randint(1, 2)):
            try:
                rng.choice(MUTATIONS)(rng, rng.choice(changed[1:]))
            except (AttributeError, KeyError, IndexError, TypeError, ValueError):
                continue  # the first change left nothing for the second
        prev = None
        for i, commit in enumerate(changed[1:], 1):
            try:
                changed[i] = rechained(commit, prev)
                prev = changed[i]["hash"]
            except (AttributeError, KeyError, TypeError, ValueError):
                break  # what cannot be hashed is left as it is
        data = sealed_again([json.dumps(line).encode() for line in changed])
        engine = SqliteEngine(tmp_path / f"{seed}.db") if seed % 15 == 0 else MemoryEngine()
        try:
            log = imported(data, engine)
        except WakelogError:
            assert contents(engine) == [], f"seed {seed}"
        else:
            assert verify(log).ok, f"seed {seed}"
            assert len(list(log.entries())) == log.head().seq
            log.state()
        finally:
            engine.close()


def test_sessions_that_are_not_asked_for_do_not_ride_along(new_log: NewLog) -> None:
    """A bundle that names a sibling besides the session's own ancestry, with commits nobody would look at."""
    log = new_log(fact("a"))
    stranger = log.fork()
    stranger.append(fact("unverified"))
    lines = [json.loads(line) for line in exported(stranger).splitlines()[:-1]]
    lines[0]["session"] = log.id
    refused_untouched(sealed_again([json.dumps(line).encode() for line in lines]))


def test_headers_that_only_make_sense_together_are_refused(new_log: NewLog) -> None:
    """Two stored headers, neither of them JSON, that would read as two when put side by side with a comma."""
    log = new_log()
    log.append(fact("a"), fact("b"))
    lines = [json.loads(line) for line in exported(log).splitlines()[:-1]]
    (h1, s1, b1), (h2, s2, b2) = lines[2]["records"]
    h1 = f'{h1},{h2[:-1]},"z":"'
    lines[2]["records"] = [[h1, s1, b1], ['"}', s2, b2]]
    chain = bytes.fromhex(lines[2]["prev"])
    for header, _, _ in lines[2]["records"]:
        chain = hashlib.sha256(chain + header.encode()).digest()
    lines[2]["hash"] = chain.hex()
    refused_untouched(sealed_again([json.dumps(line).encode() for line in lines]))


def test_a_bundle_that_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "BUNDLE_MAX", 10_000)
    refused_untouched(gzip.compress(b"0" * 1_000_000))
