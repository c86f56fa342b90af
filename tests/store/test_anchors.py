"""A store compared with signed heads: what holds and since when, and each way to lose history is distinguished."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import wakelog
from tests.files.repository import needs_git
from wakelog import Store, UserMessage
from wakelog.errors import ConflictError, CorruptLogError, InvalidInputError, NotFoundError, WakelogError
from wakelog.evidence.anchor_log import AnchorLog, AnchorRound
from wakelog.evidence.head_notes import open_proof, open_receipt
from wakelog.evidence.merkle import is_consistent
from wakelog.evidence.signed_note import PrivateKey

KEY = PrivateKey.new("ci.example")
HOUR = 3_600_000_000
START = 1_794_733_200_000_000


class Ticking:
    """A clock that goes on an hour when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        self.now += 1
        return self.now


class World:
    """A store with sessions a and b, and a log of anchors beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Ticking()
        self.store = self.open("store")
        self.say("a", 1)
        self.say("b", 1)
        self.log = self.store.anchors.log(str(folder / "anchors"), [KEY.public], create=True)
        self.anchor()

    def open(self, name: str) -> Store:
        return wakelog.open(self.folder / name, clock=self.clock)

    def say(self, name: str, times: int = 1, store: Store | None = None, words: str = "hi") -> None:
        session = (store or self.store).session(name, folder="")
        for _ in range(times):
            session.append(UserMessage(words))

    def anchor(self, store: Store | None = None) -> AnchorRound | None:
        self.clock.now += HOUR
        return (store or self.store).anchors.add(self.log, KEY)

    def backup(self, name: str) -> None:
        self.store.close()
        shutil.copytree(self.folder / "store", self.folder / name)
        self.store = self.open("store")

    def swap(self, name: str) -> None:
        """Puts another store in the place of this one."""
        self.store.close()
        self.store = self.open(name)

    def verdicts(self) -> dict[str, str]:
        found = self.store.anchors.verify(AnchorLog(self.log.place, [KEY.public]))
        return {each.name or "?": each.verdict for each in found.sessions}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.store.close()


def test_anchors_hold_and_say_since_when(world: World) -> None:
    world.say("a", 2)
    second = world.anchor()
    world.say("a")
    found = world.store.anchors.verify(world.log)
    a = next(each for each in found.sessions if each.name == "a")
    assert found.ok
    assert found.rolled_back is None
    assert found.rounds == 2
    assert second is not None
    assert [h.session for h in second.heads] == [a.session]
    assert a.since is not None
    assert a.held is not None
    assert (a.since.seq, a.held.seq, a.head, a.anchors) == (2, 4, 5, 2)
    assert a.held.at - a.since.at >= HOUR
    assert a.told == "1 event came after it"


def test_a_round_has_only_what_is_new(world: World) -> None:
    assert world.anchor() is None
    assert len(world.log.rounds) == 1
    world.say("b")
    done = world.anchor()
    assert done is not None
    assert len(done.heads) == 1
    assert done.size == 3


def test_a_cut_off_end_is_told(world: World) -> None:
    world.backup("old")
    world.say("a", 3)
    world.anchor()
    world.swap("old")
    world.say("b", 3)  # the store went on: only the one session lost its end
    world.log.refresh()
    assert world.verdicts() == {"a": "cut-off", "b": "holds"}
    a = next(s for s in world.store.anchors.verify(world.log).sessions if s.name == "a")
    assert a.held is not None
    assert a.failed is not None
    assert (a.held.seq, a.failed.seq, a.head) == (2, 5, 2)
    assert world.store.anchors.verify(world.log).rolled_back is None


def test_a_replaced_history_is_told(world: World) -> None:
    world.backup("old")
    world.say("a", 3)
    world.anchor()
    world.swap("old")
    world.say("a", 3, words="something else")
    found = next(s for s in world.store.anchors.verify(world.log).sessions if s.name == "a")
    assert found.verdict == "replaced"
    assert found.told == "e5 is not the event that was anchored: history was replaced after e2"


def test_a_rolled_back_store_is_told(world: World) -> None:
    world.backup("old")
    world.say("a", 3)
    world.say("b", 2)
    world.anchor()
    world.say("c")
    world.anchor()
    world.swap("old")
    found = world.store.anchors.verify(world.log)
    assert {s.name: s.verdict for s in found.sessions} == {"a": "cut-off", "b": "cut-off", "": "missing"}
    back = found.rolled_back
    assert back is not None
    assert not found.ok
    assert (back.after, back.before) == (world.log.rounds[0].at, world.log.rounds[1].at)
    assert (back.sessions, back.went_on) == (3, False)


def test_a_rolled_back_store_that_went_on_is_told(world: World) -> None:
    world.backup("old")
    world.say("a", 3)
    world.say("b", 2)
    world.anchor()
    world.swap("old")
    world.say("a", 9, words="again")
    found = world.store.anchors.verify(world.log)
    assert found.rolled_back is not None
    assert found.rolled_back.went_on


def test_another_store_is_no_rollback(world: World, tmp_path: Path) -> None:
    world.swap("other")
    found = world.store.anchors.verify(world.log)
    assert {s.verdict for s in found.sessions} == {"missing"}
    assert found.rolled_back is None
    assert not found.ok


def test_a_deleted_session_is_no_fault(world: World) -> None:
    world.store.delete(world.store.resume("a"), why="asked for")
    found = world.store.anchors.verify(world.log)
    assert found.ok
    assert {s.verdict for s in found.sessions} == {"deleted", "holds"}


def test_anchors_hold_after_erasing_and_pruning_and_in_forks(world: World) -> None:
    a = world.store.resume("a")
    fork = a.fork(name="f")
    fork.append(UserMessage("on the side"))
    world.anchor()
    world.store.erase(a, 2, why="private")
    assert world.verdicts() == {"a": "holds", "b": "holds", "f": "holds"}


def test_what_does_not_hold_is_not_anchored_over(world: World) -> None:
    world.backup("old")
    world.say("a", 3)
    world.anchor()
    world.swap("old")
    with pytest.raises(CorruptLogError, match="anchored at e5") as told:
        world.anchor()
    assert told.value.kind == "anchor-not-held"
    world.say("a", 3, words="other")
    with pytest.raises(CorruptLogError, match="anchored at e5"):
        world.anchor()


# The log itself


def _round(world: World, number: int) -> Path:
    return Path(world.log.place) / f"{number:08}.heads"


def _grown(world: World) -> AnchorLog:
    for name in ("a", "b", "a"):
        world.say(name)
        world.anchor()
    return AnchorLog(world.log.place, [KEY.public])


@pytest.mark.parametrize(
    "touch",
    [
        lambda text: text.replace(" 2 ", " 3 ", 1),
        lambda text: text.replace("\ntime 20", "\ntime 19"),
        lambda text: text.split("\n", 1)[1],
        lambda text: text[:-20],
        lambda text: "",
        lambda text: "\n\n",
        lambda text: text.replace("ci.example\n", "xx.example\n"),
        lambda text: text.replace("wakelog-head/1", "wakelog-head/2"),
    ],
)
def test_a_round_that_somebody_touched_does_not_count(world: World, touch: Callable[[str], str]) -> None:
    log = _grown(world)
    path = _round(world, 1)
    path.write_text(touch(path.read_text()))
    found = AnchorLog(log.place, [KEY.public])
    assert found.rounds == []
    assert "round 1" in found.fault
    report = world.store.anchors.verify(found)
    assert not report.ok
    assert report.log_fault
    with pytest.raises(CorruptLogError, match="does not hold"):
        world.store.anchors.add(found, KEY)


def test_bytes_that_are_no_text_do_not_count(world: World) -> None:
    _round(world, 1).write_bytes(b"\xff\xfe\n\n")
    assert "not text" in AnchorLog(world.log.place, [KEY.public]).fault


def test_a_missing_round_is_told_and_what_is_before_it_counts(world: World) -> None:
    log = _grown(world)
    _round(world, 3).unlink()
    found = AnchorLog(log.place, [KEY.public])
    assert len(found.rounds) == 2
    assert "round 3 is missing" in found.fault


def test_a_cut_off_log_is_told_by_a_receipt_kept_elsewhere(world: World) -> None:
    log = _grown(world)
    kept = log.rounds[-1].note
    _round(world, 4).unlink()
    found = AnchorLog(log.place, [KEY.public])
    assert not found.fault, "by itself it looks whole"
    report = world.store.anchors.verify(found, kept=[kept])
    assert not report.ok
    assert "cut off" in report.kept_faults[0]


def test_a_rewritten_log_is_told_by_a_receipt_kept_elsewhere(world: World, tmp_path: Path) -> None:
    kept = world.log.rounds[0].note
    world.say("a", 5)
    forged = world.store.anchors.log(str(tmp_path / "forged"), [KEY.public], create=True)
    world.store.anchors.add(forged, KEY)
    report = world.store.anchors.verify(forged, kept=[kept])
    assert not report.ok
    assert "rewritten" in report.kept_faults[0]
    assert world.store.anchors.verify(world.log, kept=[kept]).ok


def test_a_log_signed_by_somebody_else_proves_nothing(world: World) -> None:
    found = AnchorLog(world.log.place, [PrivateKey.new("ci.example").public])
    assert found.rounds == []
    assert "none of the given keys" in found.fault


def test_an_empty_log_proves_nothing(world: World, tmp_path: Path) -> None:
    empty = world.store.anchors.log(str(tmp_path / "empty"), [KEY.public], create=True)
    assert not world.store.anchors.verify(empty).ok


def test_a_log_is_not_made_by_looking_for_it(world: World, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no log of anchors"):
        world.store.anchors.log(str(tmp_path / "none"), [KEY.public])
    (tmp_path / "file").write_text("x")
    with pytest.raises(WakelogError, match="not a folder"):
        world.store.anchors.log(str(tmp_path / "file"), [KEY.public], create=True)


def test_of_two_that_anchor_at_once_both_are_kept(world: World) -> None:
    other = AnchorLog(world.log.place, [KEY.public])
    world.say("a")
    world.anchor()
    world.say("b")
    assert world.store.anchors.add(other, KEY) is not None  # it believes the next round is 2
    both = AnchorLog(world.log.place, [KEY.public])
    assert len(both.rounds) == 3
    assert not both.fault


def test_one_that_always_comes_second_gives_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.say("a")
    monkeypatch.setattr(world.log._place, "put", lambda key, content: False)
    with pytest.raises(ConflictError, match="nothing was added"):
        world.anchor()


def test_a_clock_that_goes_back_does_not_break_the_log(world: World) -> None:
    world.say("a")
    world.clock.now -= 100 * HOUR
    world.anchor()
    assert not AnchorLog(world.log.place, [KEY.public]).fault


def test_proofs_of_the_log_hold_without_it(world: World) -> None:
    log = _grown(world)
    for session, found in log.anchors.items():
        signed = open_proof(log.proof(session), [KEY.public])
        assert signed.anchor == found[-1][1]
        assert world.store.resume(session).verify(signed.anchor).ok
    old, new = (open_receipt(log.rounds[n].note, [KEY.public]) for n in (1, -1))
    assert is_consistent(old.size, old.root, new.size, new.root, log.proof_since(old.size))
    with pytest.raises(NotFoundError, match="no anchor of"):
        log.proof(world.store.reserve("never-anchored"))


def test_a_log_lives_in_an_object_store_too(world: World, tmp_path: Path) -> None:
    place = (tmp_path / "objects").as_uri()
    log = world.store.anchors.log(place, [KEY.public], create=True)
    assert world.store.anchors.add(log, KEY) is not None
    world.say("a")
    assert world.store.anchors.add(log, KEY) is not None
    assert world.store.anchors.verify(AnchorLog(place, [KEY.public])).ok


def test_anchoring_goes_on_after_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        world.say("a")
        return len(waits) == 3

    real = world.log.refresh
    troubles = iter([None, WakelogError("away"), None])

    def refresh() -> None:
        if (trouble := next(troubles)) is not None:
            raise trouble
        real()

    world.say("a")
    monkeypatch.setattr(world.log, "refresh", refresh)
    told = list(world.store.anchors.follow(world.log, KEY, 60.0, wait))
    assert [type(each) for each in told] == [AnchorRound, WakelogError, AnchorRound]
    assert waits == [60.0] * 3


# One head by itself


def test_a_head_signed_by_itself_needs_no_log(world: World) -> None:
    a = world.store.resume("a")
    signed = world.store.anchors.sign(a, KEY)
    world.say("a")
    head = world.store.anchors.open(signed, [KEY.public])
    assert head.signer == "ci.example"
    assert head.anchor.seq == 2
    assert a.verify(head.anchor).ok
    with pytest.raises(InvalidInputError, match="no signer was given"):
        world.store.anchors.open(signed, [])
    with pytest.raises(CorruptLogError):
        world.store.anchors.open(signed, [PrivateKey.new("ci.example").public])


@pytest.mark.parametrize(
    "touch",
    [
        lambda text: text.replace(" 2 ", " 1 ", 1),
        lambda text: text.replace("index 0", "index 1"),
        lambda text: text.replace("index 0", "index -1"),
        lambda text: text.replace("index 0\n", "index 0\n" + "A" * 43 + "=\n"),
        lambda text: text.replace("index 0\n", "index 0\nhash\n"),
        lambda text: text.replace("\n1\n", "\n2\n"),
        lambda text: text[:100],
    ],
)
def test_a_signed_head_that_somebody_touched_is_refused(world: World, touch: Callable[[str], str]) -> None:
    signed = world.store.anchors.sign(world.store.resume("a"), KEY)
    with pytest.raises(CorruptLogError):
        world.store.anchors.open(touch(signed), [KEY.public])


def test_a_key_signs_in_its_own_name_only(world: World) -> None:
    note = KEY.sign("other.example\n1\n" + "A" * 43 + "=\ntime 2026-11-17T02:20:03Z\n")
    with pytest.raises(CorruptLogError, match="in the name of"):
        open_receipt(note, [KEY.public])
    with pytest.raises(CorruptLogError, match="not a receipt"):
        open_receipt(KEY.sign("ci.example\n0\nx\n"), [KEY.public])
    with pytest.raises(CorruptLogError, match="not the time"):
        open_receipt(KEY.sign("ci.example\n1\n" + "A" * 43 + "=\ntime yesterday\n"), [KEY.public])


# Git


@needs_git
def test_receipts_are_kept_in_git_notes(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    for args in (
        ["init", "-q"],
        ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *args], cwd=folder, check=True)
    assert world.store.anchors.kept_in_git(str(folder)) == []
    notes = [world.log.rounds[0].note]
    world.say("a")
    world.anchor()
    notes.append(world.log.rounds[1].note)
    for note in notes:
        world.store.anchors.keep_in_git(note, str(folder))
    assert world.store.anchors.kept_in_git(str(folder)) == notes
    assert world.store.anchors.verify(world.log, kept=notes).ok
    with pytest.raises(WakelogError):
        world.store.anchors.keep_in_git(notes[0], str(tmp_path / "anchors"))
