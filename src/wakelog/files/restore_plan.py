"""What going back to a point would do to each file on disk, told before it is done.

For every file that was changed after the point, whether in view or not: what it was then, what the log says it is by
now, and what it really is. Only where the last two agree is it replaced. If somebody edited it since, it is a conflict
and stays as it is; if the log does not hold what it was, it is unknown, with the reason. Nothing is left out: calls
whose changes nobody captured are named too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

import msgspec

from wakelog.diff.rewind_preview import Beyond, effects_between
from wakelog.errors import NotFoundError
from wakelog.files.capture import as_value, line_counts
from wakelog.files.file_history import FilePast, FileSide, RecordedChange, content_of, pasts, text_as_recorded
from wakelog.files.git import head_of, repository_of
from wakelog.files.tree_writer import DiskEntry, FilePlace, OpenRoot, locate
from wakelog.log import Log
from wakelog.log.intake import Redact
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.calls import ASKS, SETTLES, Call, Calls
from wakelog.model.ids import Seq, SessionId
from wakelog.model.values import Value
from wakelog.redaction.values import REDACTED

Do = Literal["restore", "delete", "already", "conflict", "unknown", "ignored"]
_COMMAND_FIELDS = ("command", "cmd", "script", "args", "argv")
_COMMAND_MAX = 200


class FileStep(msgspec.Struct, frozen=True):
    """What would be done to one file.

    `restore` and `delete` bring it back, `already` means that it is so; `conflict` leaves what somebody edited,
    `unknown` what the log cannot tell; `ignored` is what git ignores, so that it was not captured.
    """

    path: str
    do: Do
    why: str = ""
    added: int = 0
    removed: int = 0
    turn: int = 0
    """The turn of the first change after the point; of a conflict, of the last change the log knows."""
    by: str = ""
    """The call that made the first change, as far as it is known."""
    rescue: bool = False
    """What is there now is copied aside first: the log does not hold it."""
    place: FilePlace | None = None
    then: FileSide | None = None
    now: FileSide | None = None
    """What the log says it is by now."""
    disk: DiskEntry | None = None

    @property
    def writes(self) -> bool:
        return self.do in ("restore", "delete")


class RestorePlan(msgspec.Struct, frozen=True):
    """Everything a person needs to know before files are touched."""

    session: SessionId
    at: Seq
    head: Seq
    folder: str
    roots: tuple[str, ...]
    steps: tuple[FileStep, ...]
    unseen: tuple[Beyond, ...]
    """Calls with effects after the point whose changes of files were not captured."""
    commands: dict[str, str]
    """Each such call in words, by its action."""
    rescue: str
    """Where copies are kept of what the log does not hold."""
    git: str
    """The commit that HEAD stands for, and goes on standing for; empty outside a repository."""

    def of(self, *what: Do) -> tuple[FileStep, ...]:
        return tuple(step for step in self.steps if step.do in what)

    @property
    def is_partial(self) -> bool:
        """Whether something that was asked for cannot be done."""
        return bool(self.of("conflict", "unknown") or self.unseen)


def plan_restore(
    log: Log,
    at: Seq,
    *,
    folder: str,
    roots: Iterable[str] = (),
    paths: Iterable[str] = (),
    force: bool = False,
) -> RestorePlan:
    """What restoring files to a point would do. With `paths`, only for these files and what lies below these folders;
    with `force`, what somebody edited is replaced as well, and a copy of it kept."""
    folder = os.path.realpath(folder)
    if not os.path.isdir(folder):
        raise NotFoundError(f"there is no folder {folder}", kind="folder-not-found", hint="name the project's folder")
    real = tuple(os.path.realpath(root) for root in roots) or (folder,)
    only = tuple(paths)
    head = log.head().seq
    calls = _Calls(log, at)
    steps = _Planner(log, folder, real, force, calls).plan([*pasts(log, at, upto=head, paths=only).values()])
    unseen = () if only else calls.unseen(at, head)
    repository = repository_of(folder)
    return RestorePlan(
        session=log.id,
        at=at,
        head=head,
        folder=folder,
        roots=real,
        steps=tuple(steps),
        unseen=unseen,
        commands={call.action: calls.words(call.action) for call in unseen},
        rescue=rescue_home(log, folder),
        git=head_of(repository) if repository is not None else "",
    )


def rescue_home(log: Log, folder: str) -> str:
    """Where copies are kept: beside the store where it is a folder on this disk, else below the project's."""
    path = log.engine.abilities.path
    home = os.path.dirname(os.path.abspath(path)) if path is not None else os.path.join(folder, ".wakelog")
    return os.path.join(home, "rescue")


class _Planner:
    """Judges files one by one."""

    def __init__(self, log: Log, folder: str, roots: tuple[str, ...], force: bool, calls: _Calls) -> None:
        self._log = log
        self._folder = folder
        self._roots = roots
        self._force = force
        self._calls = calls

    def plan(self, found: list[FilePast]) -> list[FileStep]:
        steps = [self._step(past) for past in found]
        # A symbolic link that came after the point may stand where a folder was; it goes first.
        freed = {step.place for step in steps if step.do == "delete"}
        steps = [self._unblocked(step, past, freed) for step, past in zip(steps, found, strict=True)]
        return [self._with_room(step, freed) for step in steps]

    def _unblocked(self, step: FileStep, past: FilePast, freed: set[FilePlace | None]) -> FileStep:
        if step.disk is None or not step.disk.blocked or step.place is None:
            return step
        if FilePlace(step.place.root, step.disk.blocked) not in freed:
            return step
        return self._judge(past, step.place, DiskEntry("none"))

    def _with_room(self, step: FileStep, freed: set[FilePlace | None]) -> FileStep:
        """A folder may stand where a file was. It makes room when all that is in it goes."""
        if step.do != "restore" or step.place is None or (step.disk is not None and step.disk.exists):
            return step
        root = step.place.root
        with OpenRoot(root) as tree:
            other = next((p for p in tree.below(step.place.parts) if FilePlace(root, p) not in freed), None)
        if other is None:
            return step
        why = f"a folder is there now, and {'/'.join(other)} in it would be lost"
        return msgspec.structs.replace(step, do="conflict", why=why, added=0, removed=0)

    def _step(self, past: FilePast) -> FileStep:
        if any(change.is_ignored for change in past.later):
            return self._unknown(past, "ignored by git, content not captured", do="ignored")
        place = locate(past.path, self._folder, self._roots)
        if isinstance(place, str):
            return self._unknown(past, place)
        with OpenRoot(place.root) as tree:
            disk = tree.look(place.parts)
        if disk.blocked and not past.then.exists:
            disk = DiskEntry("none")  # it is to be gone, and what a link leads to is another file
        if disk.blocked:
            step = self._unknown(past, "a folder in its path is a symbolic link")
            return msgspec.structs.replace(step, place=place, disk=disk)
        return self._judge(past, place, disk)

    def _judge(self, past: FilePast, place: FilePlace, disk: DiskEntry) -> FileStep:
        """The heart of it: restore only what the log knows, over only what the log knows."""
        then = past.then
        content, missing = content_of(self._log, then) if then.exists else (b"", "")
        if then.missing or missing:
            return self._unknown(past, missing or then.missing)
        if then.is_link and not _stays_inside(place, os.fsdecode(content)):
            return self._unknown(past, "it was a symbolic link that points outside")
        if _is_at(disk, then):
            return self._made(past, "already", place, disk, "it is so already")
        conflict, is_vague = self._conflict(past, disk, place)
        if conflict and not self._force:
            return self._made(past, "conflict", place, disk, conflict)
        if disk.kind == "other":
            return self._made(past, "conflict", place, disk, disk.missing)
        now = content_of(self._log, past.now)[0] if disk.exists and past.now.exists else None
        added, removed = line_counts(now, content if then.exists else None) if not conflict else (0, 0)
        why = conflict or (f"created {_point(past.later[0])}" if not past.later[0].before.exists else "")
        step = self._made(past, "restore" if then.exists else "delete", place, disk, why)
        rescue = disk.exists and bool(conflict or is_vague or past.now.missing)
        return msgspec.structs.replace(step, added=added, removed=removed, rescue=rescue)

    def _conflict(self, past: FilePast, disk: DiskEntry, place: FilePlace) -> tuple[str, bool]:
        """Why a file may hold somebody's own edits; and whether that could not be told for certain."""
        last = past.later[-1]
        now = last.after
        where = _point(last)
        if now.missing == REDACTED and disk.kind == "file":
            with OpenRoot(place.root) as tree:
                content = tree.read(place.parts, 1 << 30)
            # The log holds it without its secrets, and no hash of it. Without theirs the two must be the same.
            if _redacted(self._log.redact, content) != text_as_recorded(self._log, now):
                return f"you edited it after {where}", True
            return self._break_in(past), True
        if now.exists and now.missing and not now.hash:
            return f"whether you edited it after {where} cannot be told: {now.missing}", True
        if disk.exists and not now.exists:
            return f"you made it anew after {where}", False
        if now.exists and not disk.exists:
            return f"you deleted it after {where}", False
        if now.exists and not _is_at(disk, now, only_executable=True):
            return f"you edited it after {where}", False
        return self._break_in(past), False

    def _break_in(self, past: FilePast) -> str:
        """Whether somebody changed the file between two recorded changes: what one left is not what the next found."""
        for one, two in zip(past.later, past.later[1:], strict=False):
            left, found = one.after, two.before
            if left.missing == REDACTED == found.missing:
                is_same = text_as_recorded(self._log, left) == text_as_recorded(self._log, found)
            elif (left.exists and not left.hash) or (found.exists and not found.hash):
                continue  # not known
            else:
                is_same = (left.exists, left.hash) == (found.exists, found.hash)
            if not is_same:
                return f"you edited it between {_point(one)} and {_point(two)}"
        return ""

    def _unknown(self, past: FilePast, why: str, do: Do = "unknown") -> FileStep:
        first = past.later[0]
        return FileStep(past.path, do, why, turn=first.turn, by=self._calls.words(first.action))

    def _made(self, past: FilePast, do: Do, place: FilePlace, disk: DiskEntry, why: str) -> FileStep:
        change = past.later[-1] if do == "conflict" else past.later[0]
        by = self._calls.words(change.action)
        step = FileStep(past.path, do, why, turn=change.turn, by=by, place=place, disk=disk)
        return msgspec.structs.replace(step, then=past.then, now=past.now)


def _point(change: RecordedChange) -> str:
    return f"@{change.turn}" if change.turn else f"e{change.seq}"


def _is_at(disk: DiskEntry, side: FileSide, *, only_executable: bool = False) -> bool:
    """Whether what is on disk is what a side says; of the permissions, on request, only whether it can be run: the rest
    changes with whoever copies a file."""
    if not side.exists or not disk.exists:
        return disk.exists == side.exists
    if disk.hash != side.hash or (disk.kind == "link") != side.is_link:
        return False
    counts = 0o100 if only_executable else 0o777
    return disk.kind == "link" or not side.mode or not (_permissions(disk.mode) ^ _permissions(side.mode)) & counts


def _permissions(mode: int | str) -> int:
    """Read, write and execute, of a number or of octal text; what is no mode has none."""
    try:
        return (int(mode, 8) if isinstance(mode, str) else mode) & 0o777
    except ValueError:
        return 0


def _stays_inside(place: FilePlace, target: str) -> bool:
    """Whether a symbolic link, put at a place, points to something below the same root."""
    if not target or target.startswith("/"):
        return False
    end = os.path.normpath("/".join([*place.parts[:-1], target]))
    return end != ".." and not end.startswith("../")


def _redacted(redact: Redact | None, content: bytes | None) -> bytes | None:
    """A content as the log would have taken it in."""
    value = as_value(content)
    if redact is not None and value is not None:
        event = redact(ev.FileChanged(path="x", after=value))[0]
        assert isinstance(event, ev.FileChanged)
        value = event.after
    return value.encode() if isinstance(value, str) else value


class _Watch:
    """Whether the runtime, which looked before each try of a call, looked after it too. A try that was cut off or given
    up may have changed files since, whatever somebody says of the call later."""

    def __init__(self) -> None:
        self._is_open = self._missed = False

    @property
    def is_whole(self) -> bool:
        return not (self._is_open or self._missed)

    def take(self, entry: Entry) -> None:
        if entry.kind == "action.started":
            self._missed |= self._is_open
            self._is_open = True
        elif self._is_open and (entry.kind in SETTLES or entry.kind == "action.uncertain"):
            self._is_open = False
            self._missed |= not _is_told_at_its_end(entry)


def _is_told_at_its_end(entry: Entry) -> bool:
    """Whether an event was recorded when the tool had returned. After a timeout it may still be at work."""
    if entry.header.actor != "tool":
        return False
    if entry.kind == "action.uncertain":
        return bool(entry.body.get("error"))  # it returned with a doubt; without an error it was stopped
    return entry.kind in ("action.succeeded", "action.failed")


class _Calls:
    """The calls after a point: which tool, with what, and whether files were captured around it."""

    def __init__(self, log: Log, after: Seq) -> None:
        self._log = log
        self._calls = Calls(Call)
        self._captured: set[Seq] = set()
        watches: dict[Seq, _Watch] = {}
        for entry in log.entries(after=after):
            call = self._calls.take(entry.seq, entry.kind, entry.header, entry.body)
            if call is None:
                continue
            if entry.kind in ASKS:
                policy = entry.body.get("policy")
                if isinstance(policy, dict) and policy.get("captures"):
                    watches[call.request] = _Watch()
            elif call.request in watches:
                watches[call.request].take(entry)
            elif entry.kind == "file.changed":
                self._captured.add(call.request)
        self._captured.update(request for request, watch in watches.items() if watch.is_whole)

    def words(self, action: str) -> str:
        """A call in words: the tool, and the command where it was given one."""
        call = self._calls.by_action.get(action)
        if call is None:
            return ""
        entry = self._log.entry(call.request)
        command = _command(self._log.value(entry, entry.body.get("input")))
        return f"{call.tool} `{command}`" if command else call.tool

    def unseen(self, after: Seq, upto: Seq) -> tuple[Beyond, ...]:
        """Calls that may have changed files, and around which nobody looked."""
        effects = effects_between(self._log, after, upto, with_file_changes=True)
        return tuple(call for call in effects if call.seq not in self._captured)


def _command(given: Value) -> str:
    """The command in a call's input, on one line; empty when it has none."""
    if isinstance(given, dict):
        given = next((given[name] for name in _COMMAND_FIELDS if given.get(name)), "")
    if isinstance(given, list) and all(isinstance(word, str) for word in given):
        given = " ".join(given)
    return " ".join(given.split())[:_COMMAND_MAX] if isinstance(given, str) else ""
