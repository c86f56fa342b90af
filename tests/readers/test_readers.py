"""Two readers that know nothing but docs/reference/format.md, against what the library says.

reader.py (standard library only) and the reader of the TypeScript client (no packages) were written from that page, by
somebody who had not seen the library's code. Sessions are built through the public library and exported; both readers
must come to the same head, state and state_hash at the head and at earlier points, and must refuse what the library
refuses.
"""

import base64
import gzip
import hashlib
import io
import json
import random
import re
import subprocess
from pathlib import Path

import pytest

import wakelog
from tests.readers.lasting import LASTING, READERS
from wakelog.log.bundle import export_bundle, import_bundle
from wakelog.log.removal import delete, erase, prune
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.records import EventDraft

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "reference" / "format.md"
GOLDEN = HERE.parent / "golden" / "v1"
LARGE = "a large value, stored beside the records; 🜁 é\n" * 200
OTHER = "another one " * 500


# ---------------------------------------------------------------- running the readers


def run(name, args):
    """Exit code and answers of a process of its own."""
    done = subprocess.run(
        [*READERS[name], *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=180, check=False
    )
    assert done.stderr == b"", f"the {name} reader wrote to stderr:\n{done.stderr.decode()}"
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    _check_shape(answers)
    return done.returncode, answers


def _check_shape(answers):
    for answer in answers:
        if not answer["ok"]:
            assert set(answer) == {"ok", "error", "seq"}
            assert isinstance(answer["seq"], int)
            assert len(answer["error"]) > 10


def read_each(commands):
    """What each reader, by name, answers to each of the command lines."""
    found = {name: reader.answers(commands) for name, reader in LASTING.items()}
    for answers in found.values():
        _check_shape(answers)
    return found


def read_with_both(tmp_path, data, *args):
    path = tmp_path / "read.bundle"
    path.write_bytes(data)
    return [answer for answers in read_each([(path, *args)]).values() for answer in answers]


# ---------------------------------------------------------------- sessions


def export(log):
    """What the session shares and nothing more, where that is enough."""
    try:
        export_bundle(log, out := io.BytesIO())
    except wakelog.NotAllowedError:
        export_bundle(log, out := io.BytesIO(), beyond=True)
    return out.getvalue()


def facts(log, *keys):
    for key in keys:
        log.append(ev.FactRecorded(key=key, value=f"value of {key}"))


def rooted(store, count=5):
    """A root session whose events 2 to `count` are facts k2, k3, …"""
    log = store.log("root", goal="read me")
    facts(log, *(f"k{seq}" for seq in range(2, count + 1)))
    return log


def everything(store):
    """Most kinds of event, in one session."""
    log = store.log("everything", goal="gö 😀", labels={"team": "a/b~c", "דּ": "hebrew", "😀": "smile"})
    log.append(ev.TurnStarted(input=LARGE), ev.MessageAdded(role="user", content=LARGE))
    log.append(
        ev.DecisionMade(choice="c", because="b", alternatives=["x"], assumptions=["y"], evidence=[1, "text"], why="w"),
        ev.FactRecorded(key="a/b~c", value={"😀": 1, "דּ": [2.5, {"z": None}], "": -0.0, "__proto__": {"x": 1}}),
        ev.FactRecorded(key="__proto__", value="constructor"),
        ev.FactRecorded(key="", value=[]),
    )
    log.append(
        ev.ActionRequested(action="a1", tool="shell", effect="write", input={"argv": [OTHER]}),
        ev.ActionStarted(action="a1"),
        commit_id="chosen by the caller",
    )
    log.append(
        ev.ActionSucceeded(action="a1", output=LARGE, cost=ev.Cost(tokens_in=3, tokens_out=4, usd_micros=5)),
        ev.FileChanged(path="b.py", added=3),
        ev.FileChanged(path="a.py", change="created", after=OTHER),
        ev.FileChanged(path="b.py", change="deleted"),
    )
    log.append(
        ev.StatePatched(
            patch=[
                {"op": "add", "path": "/data/list", "value": [1, 2, 3]},
                {"op": "add", "path": "/data/list/1", "value": {"q": 1.25}},
                {"op": "add", "path": "/data/list/4", "value": "end"},
                {"op": "remove", "path": "/data/list/0"},
                {"op": "replace", "path": "/data/list/1", "value": {}},
                {"op": "add", "path": "/data/~0~1", "value": {"10": 1, "9": 2, "": {"deep": {}}}},
                {"op": "remove", "path": "/data/~0~1/9"},
            ]
        )
    )
    log.append(ev.Foreign(foreign_kind="x.vendor.thing", data={"why": "mine", "n": 1.5, "nested": {"delta": [1]}}))
    log.append(EventDraft(ev.Foreign(foreign_kind="x.web", data={"page": "…"}), trust="untrusted", source="web"))
    log.append(
        EventDraft(
            ev.MessageAdded(role="tool", content="hm"),
            actor="tool",
            cause=3,
            derived_from=((1, 2), (4, 5)),
            trust="unverified",
            source="url:docs",
        )
    )
    log.append(ev.CheckpointNamed(name="half way", at=log.head().seq))
    log.append(ev.FactRecorded(key="z", value=1), ev.CheckpointNamed(name="in a commit", at=log.head().seq + 1))
    log.append(ev.CheckpointNamed(name="of the past", at=3))
    log.rewind(9, why="wrong way")
    facts(log, "on the other branch")
    log.rewind(log.head().seq - 2, mode="undo")
    log.append(ev.FactRetracted(key="z"), ev.GoalSet(goal=None), ev.LabelsSet(labels={"team": None, "new": "n"}))
    log.append(ev.TurnEnded())
    epoch = log.take_lease("me")
    log.append(
        ev.TurnStarted(),
        ev.TurnEnded(outcome="failed", error=ev.Failure(type="timeout", message="…", retryable=True)),
        ev.TurnStarted(retry=True),
        guard=epoch,
    )
    log.append(
        ev.BudgetSet(limits={"tokens": 5000}),
        ev.BudgetSpent(cost=ev.Cost(tokens_in=2, duration_us=9)),
        ev.BudgetReached(limit="tokens"),
        ev.FlagRaised(flag="f", message="m"),
        ev.FlagRaised(flag="g"),
        ev.FlagCleared(flag="f"),
        ev.ContextEvicted(key="k", handle=3, tokens=7),
        ev.ResourceTouched(resource="mail", category="app"),
        ev.SubagentSpawned(session="s_01JCX4M0E8Z6Y4T2R0N8K6H4F2", task="look"),
        ev.DeadEndNoted(tried="t", learned="l"),
        ev.ArtefactRecorded(name="n", content=OTHER),
        ev.InputRequested(request="q", prompt="?", options=["yes", "no"]),
        ev.ActionRecorded(action="r", tool="t", outcome="failed", error=ev.Failure(type="x")),
        ev.GapNoted(missed="an hour"),
        ev.NoteAdded(text="n", on=2),
    )
    log.append(
        ev.ActionRequested(action="a2", tool="t"), ev.ActionStarted(action="a2"), ev.ActionUncertain(action="a2")
    )
    log.append(ev.InputAnswered(request="q", answer="yes"), ev.TurnEnded(), commit_id="🆔 mine")
    log.release_lease(epoch)
    log.append(ev.SessionClosed(outcome="done"))
    log.append(ev.SessionArchived())
    return [log]


def values(store):
    """Numbers and names that are easily written in another way, or sorted in another order."""
    dice = random.Random(8785)
    numbers = [0.1, 1e-6, 1e-7, 1.5e-7, 5e-324, 2.2250738585072014e-308, 123456.789, 4503599627370495.5, 0.000001234]
    numbers += [2**53 - 1, -(2**53 - 1), 2.0, -0.0, 333333333.33333329, 1 / 3, -1e-9]
    for _ in range(600):
        number = dice.choice([-1, 1]) * dice.random() * 10.0 ** dice.randint(-320, 15)
        numbers.append(int(number) if number.is_integer() else number)
    alphabet = [
        "a",
        "Z",
        "~",
        "/",
        '"',
        "\\",
        "\x00",
        "\x1f",
        "\x7f",
        "\x80",
        "é",
        "\u2028",
        "\ud7ff",
        "\ue000",
        "\uffff",
    ]
    alphabet += ["😀", "\U0010ffff", "\U00010000", "\ufb33", "\n", "\t", "\b", "\f", "\r", "1", "0", " "]
    names = ["".join(dice.choice(alphabet) for _ in range(dice.randint(0, 4))) for _ in range(300)]
    log = store.log("values")
    log.append(
        ev.StatePatched(
            patch=[
                {"op": "add", "path": "/data/numbers", "value": numbers},
                {"op": "add", "path": "/data/names", "value": {name: {"n": n} for n, name in enumerate(names)}},
            ]
        ),
        ev.FactRecorded(key="whole", value={name: [name, n] for n, name in enumerate(names)}),
    )
    log.append(*(ev.FactRecorded(key=name, value=number) for name, number in zip(names[:60], numbers, strict=False)))
    log.append(ev.CheckpointNamed(name="all", at=log.head().seq))
    return [log]


def forks(store):
    """Forks of forks, inside commits, with calls pending, and of a parent that shares nothing of its own."""
    root = rooted(store)
    root.append(ev.TurnStarted(), ev.ActionRequested(action="a", tool="t"), ev.FactRecorded(key="b", value=LARGE))
    root.append(ev.MessageAdded(role="user", content=LARGE))
    inside = root.fork(7, name="inside", why="in the middle of a commit")
    inside.append(ev.MessageAdded(role="user", content=LARGE), ev.FactRecorded(key="c", value=1))
    deeper = inside.fork(9)
    facts(deeper, "d")
    deeper.append(ev.CheckpointNamed(name="c", at=deeper.head().seq))
    early = deeper.fork(4)  # in the root's part: nothing of `inside` and `deeper` is in its history
    facts(early, "e")
    last = early.fork()
    last.append(ev.MessageAdded(role="user", content=LARGE))
    facts(root, "later")
    return [deeper, early, last]


def erased(store):
    """Facts, messages, decisions, payloads; a rewind that copied them; a checkpoint; the first event.

    The second erasure also takes something out of what the first one says of the rewind.
    """
    log = rooted(store)
    log.append(ev.MessageAdded(role="user", content=LARGE), ev.FileChanged(path="p"), commit_id="chosen")
    log.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": {"a": ["s", 1, 2.5, True, None]}}]))
    log.append(ev.DecisionMade(choice="secret", evidence=[1, "secret"]), ev.MessageAdded(role="user", content=LARGE))
    log.append(ev.CheckpointNamed(name="before", at=log.head().seq))
    log.rewind(2)
    log.rewind(log.head().seq - 1, mode="undo")
    log.append(ev.CheckpointNamed(name="after", at=log.head().seq))
    erase(log, [3, 6], why="a secret")
    log.append(ev.CheckpointNamed(name="since", at=log.head().seq))
    fork = log.fork()
    facts(log, "k3", "more")
    erase(log, [1, 5, 8, 9])
    return [log, fork]


def erased_in_a_tree(store):
    """Erased before a fork, after it, above its point, in the fork, and what vouches for it pruned or not shared."""
    root = rooted(store, 8)
    first = root.fork(6)
    erase(root, [3])
    before = root.fork(4)  # leaves before the event that says what was erased
    facts(before, "b")
    facts(first, "f", "g")
    erase(root, [2, 8])
    erase(first, [9])
    prune(first, 10)
    facts(first, "h")
    nothing = first.fork(5)
    return [root, first, before, nothing]


def pruned(store):
    """Pruned twice, in the middle of a commit; payloads that later events mention stay."""
    log = rooted(store)
    log.append(ev.MessageAdded(role="user", content=LARGE), ev.MessageAdded(role="user", content=OTHER))
    log.append(ev.FileChanged(path="p"), ev.FactRecorded(key="b", value=1), ev.MessageAdded(role="user", content=LARGE))
    prune(log, 4)
    facts(log, "c")
    prune(log, 9, why="old")
    log.append(ev.CheckpointNamed(name="c", at=log.head().seq))
    facts(log, "d")
    return [log]


def pruned_in_a_tree(store):
    """The base stands in the parent, after the point where the fork left."""
    root = rooted(store, 8)
    fork = root.fork(6)
    facts(fork, "f", "g")
    fork_of_fork = fork.fork(8)
    facts(fork_of_fork, "h")
    erase(root, [5])
    prune(root, 3)
    between = root.fork(7)
    facts(between, "b")
    prune(fork, 7)
    facts(root, "after")
    return [root, fork, fork_of_fork, between]


def adopted(store):
    """A fork's result taken back, and back again; erased in the fork since; the fork deleted."""
    root = rooted(store)
    root.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/list", "value": [1, 2]}]))
    one, two = root.fork(), root.fork()
    for fork, text in ((one, LARGE), (two, OTHER)):
        fork.append(ev.MessageAdded(role="user", content=text), ev.DecisionMade(choice="c", evidence=[3, 8]))
        fork.append(ev.FactRecorded(key="k2", value="new"), ev.FileChanged(path="p", after=text))
        fork.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/list/1", "value": text[:20]}]))
        fork.append(ev.FactRecorded(key="late", value=1), ev.DeadEndNoted(tried="t"))
    root.adopt(one, why="better")
    root.append(ev.CheckpointNamed(name="one", at=root.head().seq))
    root.adopt(two, 11, force=True)
    root.rewind(root.head().seq - 9, mode="undo")
    child = root.fork()
    facts(child, "on top")
    erase(one, [8, 12])
    delete(two)
    return [root, child]


STORIES = [everything, values, forks, erased, erased_in_a_tree, pruned, pruned_in_a_tree, adopted]


def expected(log, at):
    """What the library says of a point; None where it says that it no longer knows."""
    try:
        state = log.state(at)
    except wakelog.NotFoundError as error:
        if error.kind != "pruned":
            raise
        return None
    return {
        "session": log.id,
        "events": at,
        "head_hash": hex_of(log.entry(at).hash),
        "state_hash": log.state_hash(at),
        "state": state,
    }


def hex_of(hash_):
    return hash_.hex() if isinstance(hash_, bytes) else hash_


def points(head):
    """The head, the first event, and some between."""
    return sorted({1, 2, head // 3 + 1, head // 2, 2 * head // 3 + 1, head - 1, head} - {0})


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_readers_agree_with_the_library(story, tmp_path):
    with wakelog.open("memory:") as store:
        logs = story(store)
        commands, wanted = [], []
        for number, log in enumerate(logs):
            report = verify(log)
            assert report.ok
            path = tmp_path / f"{number}.bundle"
            data = export(log)
            path.write_bytes(gzip.compress(data) if number % 2 else data)
            head = log.head().seq
            for at in points(head):
                commands.append((path, "--at", at) if at < head else (path,))
                wanted.append((at, expected(log, at), report.scope))
        for name, answers in read_each(commands).items():
            for command, (at, known, scope), answer in zip(commands, wanted, answers, strict=True):
                if known is None:
                    assert not answer["ok"], (name, command)
                    assert answer["seq"] == at
                    continue
                assert answer["ok"], (name, command, answer)
                assert {key: answer[key] for key in known} == known, (name, command)
                assert {key: answer[key] for key in scope} == scope, (name, command)


def test_the_stories_hold_what_they_are_for():
    with wakelog.open("memory:") as store:
        (log,) = everything(store)
        kinds = {entry.kind for entry in log.entries()}
        assert len(kinds) > 35
        assert any(kind.startswith("x.") for kind in kinds)
    scopes = {}
    for story in STORIES[2:]:
        with wakelog.open("memory:") as store:
            scopes[story.__name__] = [verify(log).scope for log in story(store)]
    assert all(scope["erased"] for scope in scopes["erased"] + scopes["erased_in_a_tree"])
    assert all(scope["pruned"] for scope in scopes["pruned"] + scopes["pruned_in_a_tree"])


def test_a_session_on_disk(tmp_path):
    with wakelog.open(tmp_path / "store.db") as store:
        session = store.session("s", goal="g", data={"plan": [], "größe": 1.5})
        with session.turn(user="go") as turn:
            session.fact("ttl", "300 s")
            turn.data["plan"].append({"step": "run the tests 🧪"})
        log = store.log("s")
        for answer in read_with_both(tmp_path, export(log)):
            assert answer["ok"], answer
            assert answer["state"] == log.state()
            assert answer["state_hash"] == log.state_hash()
            assert answer["head_hash"] == hex_of(log.head().hash)


def test_the_examples_of_the_page(tmp_path):
    """The two printed records are a whole session; the bare session's state_hash stands there too."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^salt    (.*)\nbody    (.*)\nheader  (.*)\nhash    (.*)$", page, re.MULTILINE)
    assert len(found) == 2
    session, before, lines = "s_01JCX4M0E8Z6Y4T2R0N8K6H4F2", "00" * 32, []
    lines.append({"wakelog": 1, "session": session, "segments": [{"session": session}]})
    for salt, body, header, hash_ in found:
        told = json.loads(header)
        line = {"session": session, "commit_id": hash_[:16], "first": told["seq"], "last": told["seq"], "prev": before}
        line |= {"hash": hash_, "at": told["at"], "epoch": 0, "status": "open", "turn": 0, "turns": [0, 0]}
        line |= {"kinds": [told["kind"]], "records": [[header, salt, body]]}
        lines.append(line)
        before = hash_
    data = seal(lines)
    assert refusal(data) is None
    for answer in read_with_both(tmp_path, data):
        assert answer["ok"], answer
        assert answer["head_hash"] == found[-1][3]
        assert answer["state"]["goal"] == "say hello"
    bare = re.search(r"bare `session.opened` makes: `([0-9a-f]{64})`", page)[1]
    with wakelog.open("memory:") as store:
        for answer in read_with_both(tmp_path, export(store.log("bare"))):
            assert answer["state_hash"] == bare


# ---------------------------------------------------------------- anchors


def test_anchors(tmp_path):
    with wakelog.open("memory:") as store:
        log = rooted(store)
        fork = log.fork(3)
        facts(fork, "f")
        early = {"session": fork.id, "seq": 2, "hash": hex_of(fork.entry(2).hash)}
        head = {"session": fork.id, "seq": 5, "hash": hex_of(fork.entry(5).hash)}
        data, whole = export(fork), fork.anchor()
        path = tmp_path / "b"
        path.write_bytes(data)
        good = [early, head, {**early, "session": log.id}]
        bad = [
            {**head, "hash": early["hash"]},
            {**early, "hash": head["hash"]},
            {**head, "seq": 6},
            {**head, "session": log.id + ".00000000"},
            {"seq": 1},
            [],
        ]
        for answers in read_each([(path, "--anchor", json.dumps(anchor)) for anchor in good + bad]).values():
            assert [answer["ok"] for answer in answers] == [True] * len(good) + [False] * len(bad), answers

        # The end was cut off, and the end line made to fit: only an anchor tells.
        lines = unseal(data)
        cut = seal(lines[:-1])
        assert all(answer["ok"] for answer in read_with_both(tmp_path, cut))
        assert not any(answer["ok"] for answer in read_with_both(tmp_path, cut, "--anchor", json.dumps(head)))
        with wakelog.open("memory:") as other:
            assert not verify(import_bundle(other.engine, io.BytesIO(cut)), whole).ok


# ---------------------------------------------------------------- tampering


def unseal(data):
    """The lines of a bundle as objects, without the last."""
    return [json.loads(line) for line in data.decode().split("\n")[:-2]]


def seal(lines):
    """A bundle of these lines, with a last line that is right."""
    data = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    end = {"end": len(lines), "sha256": hashlib.sha256(data).hexdigest()}
    return data + json.dumps(end).encode() + b"\n"


def rechain(lines):
    """Makes every hash right again, as somebody would who rewrites the whole of a root session."""
    before = bytes(32)
    for line in lines[1:]:
        own = line["commit_id"] == line["hash"][:16]
        line["prev"] = before.hex()
        for record in line["records"]:
            header = json.loads(record[0])
            if record[1]:
                header["body_hash"] = hashlib.sha256(bytes.fromhex(record[1]) + record[2].encode()).hexdigest()
            record[0] = json.dumps(header, ensure_ascii=False)
            before = hashlib.sha256(before + record[0].encode()).digest()
        line["hash"] = before.hex()
        if own:
            line["commit_id"] = line["hash"][:16]
    return lines


def flip(text, place=-1):
    """Another character of the same kind in that place."""
    place %= len(text)
    return text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :]


def edit(part):
    """An edit of a record's header (0) or body (2) as JSON: `change` gets the object of the record that is named."""

    def make(number, record, change):
        def apply(lines):
            target = lines[number]["records"][record]
            value = json.loads(target[part])
            change(value)
            target[part] = json.dumps(value, ensure_ascii=False)
            return rechain(lines)

        return apply

    return make


edit_header, edit_body = edit(0), edit(2)


def simple_bundle():
    """One root session. Line 1: opened; 2: k2; 3: a turn with payloads and a file; 4: k; 5: a checkpoint; 6: a note."""
    with wakelog.open("memory:") as store:
        log = rooted(store, 2)
        log.append(ev.TurnStarted(input=LARGE), ev.FileChanged(path="p"), ev.MessageAdded(role="user", content=OTHER))
        log.append(ev.FactRecorded(key="k", value=[1, 2]))
        log.append(ev.CheckpointNamed(name="c", at=log.head().seq))
        log.append(ev.NoteAdded(text="the end"))
        return export(log)


def tree_bundle():
    """A fork whose parent was erased in and pruned. Lines 1 to 8: the parent; 9 and on: the fork, from event 6."""
    with wakelog.open("memory:") as store:
        root = rooted(store, 5)
        fork = root.fork(5)
        erase(root, [4])
        prune(root, 2)
        facts(fork, "f")
        return export(fork)


@pytest.fixture(scope="module")
def bundles():
    return {"simple": simple_bundle(), "tree": tree_bundle()}


def refusal(data):
    """The library's: an error, or None."""
    try:
        with wakelog.open("memory:") as store:
            import_bundle(store.engine, io.BytesIO(data))
    except wakelog.WakelogError as error:
        return error
    return None


def change(*path, by):
    """An edit of one place in a bundle's lines, which leaves the hashes as they are."""

    def apply(lines):
        place = lines
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = by(place[path[-1]])
        return lines

    return apply


def payload_of(line):
    return next(iter(line["payloads"]))


EMPTY = {"value": {"status": "active", "turn": {"number": 1}, "lease": {"epoch": 0}}}


def change_payload(number, by):
    def apply(lines):
        name = payload_of(lines[number])
        content = by(base64.b64decode(lines[number]["payloads"][name]))
        lines[number]["payloads"][name] = base64.b64encode(content).decode()
        return lines

    return apply


def drop(number):
    return lambda lines: lines[:number] + lines[number + 1 :]


def swap(one, other):
    def apply(lines):
        lines[one], lines[other] = lines[other], lines[one]
        return lines

    return apply


def swap_records(lines):
    records = lines[3]["records"]
    records[0], records[1] = records[1], records[0]
    return lines


def forge_erasure(lines):
    """The erase events give another body for event 4. Only the last event of a chain can be changed like this."""
    for line in lines[1:]:
        if line["kinds"] == ["payload.erased"]:
            header, salt, body = line["records"][0]
            body = body.replace('"$erased":4', '"$erased":5')
            fields = json.loads(header)
            fields["body_hash"] = hashlib.sha256(bytes.fromhex(salt) + body.encode()).hexdigest()
            line["records"][0] = [json.dumps(fields), salt, body]
    return lines


def without_bodies(lines):
    lines[2]["records"][0][1:] = ["", ""]
    return lines


def without_salt(lines):
    lines[2]["records"][0][1] = ""
    return lines


TAMPERED = {
    # a byte, with an end line that fits
    "header": ("simple", change(2, "records", 0, 0, by=lambda text: text.replace('"seq":2', '"seq": 2'))),
    "header beyond the history": ("tree", change(6, "records", 0, 0, by=lambda text: text + " ")),
    "header's time": ("simple", change(4, "records", 0, 0, by=lambda text: flip(text, text.index('"at":') + 12))),
    "body": ("simple", change(2, "records", 0, 2, by=lambda text: text.replace("value of k2", "value of k3"))),
    "body's white space": ("simple", change(2, "records", 0, 2, by=lambda text: text + " ")),
    "salt": ("simple", change(2, "records", 0, 1, by=flip)),
    "salt gone": ("simple", without_salt),
    "salt and body gone": ("simple", without_bodies),
    "payload": ("simple", change_payload(3, lambda content: content[:-1] + b"?")),
    "payload cut": ("simple", change_payload(3, lambda content: content[:-1])),
    "payload gone": ("simple", change(3, "payloads", by=lambda _: {})),
    "base": ("tree", change_payload(7, lambda content: content.replace(b"value of k2", b"value of k3"))),
    "replaced body": ("tree", change(4, "records", 0, 2, by=lambda text: text.replace('"$erased":4', '"$erased":3'))),
    "erase event": ("tree", forge_erasure),
    "base gone": ("tree", change(7, "payloads", by=lambda _: {})),
    "hash": ("simple", change(4, "hash", by=flip)),
    "prev": ("simple", change(4, "prev", by=flip)),
    # commits
    "commit dropped": ("simple", drop(4)),
    "first commit dropped": ("simple", drop(1)),
    "shared commit dropped": ("tree", drop(3)),
    "last shared commits dropped": ("tree", lambda lines: lines[:5] + lines[8:]),
    "prune event dropped": ("tree", drop(7)),
    "fork's first commit dropped": ("tree", drop(8)),
    "own commits dropped": ("tree", lambda lines: lines[:8]),
    "commit twice": ("simple", lambda lines: [*lines[:5], lines[4], *lines[5:]]),
    "commit of another session": ("simple", change(4, "session", by=lambda text: flip(text, 5))),
    "commits swapped": ("simple", swap(3, 4)),
    "records swapped": ("simple", swap_records),
    "sessions swapped": ("tree", lambda lines: [lines[0], *lines[8:], *lines[1:8]]),
    "record dropped": ("simple", change(3, "records", by=lambda records: records[:-1])),
    # the first line
    "newer version": ("simple", change(0, "wakelog", by=lambda version: version + 1)),
    "another session": ("simple", change(0, "session", by=lambda text: flip(text, 5))),
    "fork's place": ("tree", change(0, "segments", 1, "fork", "at", by=lambda at: at - 1)),
    "no fork": ("tree", change(0, "segments", by=lambda segments: segments[1:])),
    # summaries
    "status": ("simple", change(4, "status", by=lambda _: "closed")),
    "epoch": ("simple", change(4, "epoch", by=lambda epoch: epoch + 1)),
    "turn": ("simple", change(4, "turn", by=lambda turn: turn + 1)),
    "turns": ("simple", change(3, "turns", by=lambda _: [0, 1])),
    "kinds": ("simple", change(3, "kinds", by=lambda kinds: kinds[::-1])),
    "paths": ("simple", change(3, "paths", by=lambda _: ["q"])),
    "time of a commit": ("simple", change(4, "at", by=lambda at: at + 1)),
    # a chain that holds, around something that does not
    "wrong seq": ("simple", edit_header(4, 0, lambda header: header.update(seq=7))),
    "newer record": ("simple", edit_header(4, 0, lambda header: header.update(v=2))),
    "time goes back": ("simple", edit_header(4, 0, lambda header: header.update(at=1))),
    "delta does not fit": ("simple", edit_body(4, 0, lambda body: body["delta"][0].update(path="/no/where"))),
    "wrong checkpoint": ("simple", edit_body(5, 0, lambda body: body.update(state_hash="0" * 64))),
    "state before a checkpoint": ("simple", edit_body(4, 0, lambda body: body["delta"][0].update(path="/facts/j"))),
    # Nothing vouches for a body without a salt: whoever carries the bundle could put any state into it.
    "prune event without a salt": ("tree", change(7, "records", 0, 1, by=lambda _: "")),
    "whole document": (
        "simple",
        edit_body(4, 0, lambda body: body.update(delta=[{"op": "replace", "path": "", **EMPTY}])),
    ),
    "fork's hash": ("tree", change(0, "segments", 1, "fork", "hash", by=flip)),
    "unknown operation": ("simple", edit_body(4, 0, lambda body: body["delta"][0].update(op="test"))),
    "status beyond the history": ("tree", change(7, "status", by=lambda _: "closed")),
    "commit id": ("simple", change(4, "commit_id", by=flip)),
}


@pytest.fixture(scope="module")
def tampered(bundles, tmp_path_factory):
    """For each case: the bundle, and the readers' answers by name. All at once: a process costs more than a bundle."""
    folder = tmp_path_factory.mktemp("tampered")
    cases, commands = {}, []
    for number, (case, (which, apply)) in enumerate(TAMPERED.items()):
        data = seal(apply(unseal(bundles[which])))
        assert data != seal(unseal(bundles[which])), f"{case} changes nothing"
        path = folder / f"{number}.bundle"
        path.write_bytes(data)
        commands.append((path,))
        cases[case] = (data, {})
    for name, answers in read_each(commands).items():
        for (_, told), answer in zip(cases.values(), answers, strict=True):
            told[name] = answer
    return cases


@pytest.mark.parametrize("case", TAMPERED)
def test_tampered_bundles_are_refused(case, tampered):
    data, answers = tampered[case]
    assert refusal(data) is not None, "the library takes it"
    assert not any(answer["ok"] for answer in answers.values()), answers


def test_the_untampered_bundles_are_taken(bundles, tmp_path):
    for data in bundles.values():
        again = seal(unseal(data))  # white space and escapes of the lines are free
        assert refusal(again) is None
        assert all(answer["ok"] for answer in read_with_both(tmp_path, again))


def test_what_is_not_known_is_ignored(bundles, tmp_path):
    """Unknown fields everywhere, and an unknown kind whose delta is applied."""
    lines = unseal(bundles["simple"])
    edit_header(4, 0, lambda header: header.update(kind="fact.noticed", colour="blue"))(lines)
    edit_body(4, 0, lambda body: body.update(shape=[1]))(lines)
    lines[4]["kinds"] = ["fact.noticed"]
    lines[4]["weight"] = 1
    lines[0]["made_by"] = "a test"
    data = seal(lines)
    assert refusal(data) is None
    for answer in read_with_both(tmp_path, data):
        assert answer["ok"], answer
        assert answer["state"]["facts"]["k"]["value"] == [1, 2]


def test_files_that_were_cut_or_changed(bundles, tmp_path):
    """Without a new end line, every byte counts."""
    data = bundles["simple"]
    zipped = gzip.compress(data)
    dice = random.Random(1)
    broken = [data[: data[:-1].rindex(b"\n") + 1], data[: len(data) // 2], zipped[:-9]]
    for _ in range(3):
        place = dice.randrange(len(data))
        broken.append(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    commands = []
    for number, content in enumerate(broken):
        path = tmp_path / f"{number}.bundle"
        path.write_bytes(content)
        assert refusal(content) is not None, number
        commands.append((path,))
    for answers in read_each(commands).values():
        assert not any(answer["ok"] for answer in answers), answers


def test_what_is_no_bundle_at_all(bundles, tmp_path):
    good = tmp_path / "good.bundle"
    good.write_bytes(bundles["simple"])
    deep = b"[" * 200_000 + b"\n"
    contents = [
        b"",
        b"\n",
        b"\xff\xfe\n",
        b"null\n",
        deep,
        seal([]),
        seal([{"wakelog": 1}]),
        seal([1]),
        b"\x1f\x8bno gzip",
    ]
    commands = [(tmp_path / "not there",), (tmp_path,), (), (good, good)]
    commands += [(good, "--at", "9" * 12), (good, "--at", "x"), (good, "--at"), (good, "--anchor", "{")]
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.bad"
        path.write_bytes(content)
        commands.append((path,))
    for answers in read_each(commands).values():
        assert not any(answer["ok"] for answer in answers), answers


@pytest.mark.parametrize("name", READERS)
def test_one_document_and_an_exit_code(name, bundles, tmp_path):
    path = tmp_path / "a.bundle"
    path.write_bytes(bundles["simple"])
    code, answers = run(name, [str(path), "--at", "2"])
    assert (code, len(answers), answers[0]["events"]) == (0, 1, 2)
    code, answers = run(name, [str(path), "--at", "99"])
    assert (code, answers[0]["ok"], answers[0]["seq"]) == (1, False, 99)


# ---------------------------------------------------------------- bundles that were kept


def is_bundle(path):
    with open(path, "rb") as file:
        start_ = file.read(64)
    return start_[:2] == b"\x1f\x8b" or re.match(rb'\{\s*"wakelog"', start_) is not None


def golden_bundles():
    if not GOLDEN.is_dir():
        return []
    return [path for path in sorted(GOLDEN.rglob("*")) if path.is_file() and is_bundle(path)]


@pytest.mark.parametrize("path", golden_bundles(), ids=lambda path: path.relative_to(GOLDEN).as_posix())
def test_golden_bundles(path):
    """Bundles of earlier versions: the readers and the library say the same of them."""
    data = path.read_bytes()
    if (error := refusal(data)) is not None:
        assert not any(answers[0]["ok"] for answers in read_each([(path,)]).values()), error
        return
    with wakelog.open("memory:") as store:
        log = import_bundle(store.engine, io.BytesIO(data))
        places = points(log.head().seq)
        for answers in read_each([(path, "--at", at) for at in places]).values():
            for at, answer in zip(places, answers, strict=True):
                known = expected(log, at)
                assert answer["ok"] == (known is not None), answer
                if known is not None:
                    assert {key: answer[key] for key in known} == known
