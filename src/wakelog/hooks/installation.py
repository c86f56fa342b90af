"""What `enable` adds to an agent's settings, and `disable` removes again.

Each change of a file leaves a receipt in the user's data folder: what was inserted where, and the hash of the result.
While the file is unchanged, undoing the insertions restores every byte. After somebody else changed it, only our
entries are removed. The receipt holds nothing of the file's own content, which may be secret.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from wakelog.atomic_file import atomic_file
from wakelog.errors import ConflictError, CorruptLogError, InvalidInputError, NotAllowedError
from wakelog.hooks import hook_entries, mcp_entries
from wakelog.hooks.agents import HookedAgent, Scope
from wakelog.hooks.json_text import BadJsonError, Insertion, insert, is_blank, parse, undo_insertions
from wakelog.hooks.spool import data_folder, prepare_gaps
from wakelog.model.described import described
from wakelog.store.url import chosen_url, user_store

RECEIPTS = "enabled.json"
Made = tuple[tuple[str, ...], ...]


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `enable` did to one file."""

    agent: str
    what: tuple[str, ...]
    """`hooks`, `mcp`, or both."""
    scope: Scope
    file: str
    after: str
    """The SHA-256 of the file with our entries."""
    insertions: tuple[Insertion, ...]
    made: Made = ()
    """Paths that we created around our entries. They are removed if nothing else is in them."""
    made_file: bool = False
    made_folders: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    """The path to the MCP servers in the file."""
    store: str = ""
    """The store for its sessions, if one was named."""
    brief: bool = False


class FileChange(msgspec.Struct, frozen=True):
    """A file before and after a change. None if the file does not exist."""

    agent: str
    file: Path
    before: str | None
    after: str | None
    receipt: Receipt | None = None

    @property
    def is_change(self) -> bool:
        return self.before != self.after


def plan_enable(
    agent: HookedAgent, scope: Scope, project: Path, *, mcp: bool = False, brief: bool = False, store: str = ""
) -> list[FileChange]:
    """Plans the change of each file. Writes nothing."""
    if scope not in agent.scopes:
        raise InvalidInputError(
            f"{agent.title} has no {scope} settings", kind="bad-scope", hint=f"use --{' or --'.join(agent.scopes)}"
        )
    files: dict[Path, list[str]] = {agent.settings(scope, project): ["hooks"]}
    file, path = agent.mcp_settings(scope, project)
    if mcp:
        files.setdefault(file, []).append("mcp")
    known = {each.file: each for each in receipts()}
    return [_plan(agent, scope, f, what, path, brief, store, known.get(str(f))) for f, what in files.items()]


def _plan(
    agent: HookedAgent,
    scope: Scope,
    file: Path,
    wanted: list[str],
    path: tuple[str, ...],
    brief: bool,
    store: str,
    old: Receipt | None,
) -> FileChange:
    before = _read(file)
    # What was enabled before stays enabled.
    what = tuple(each for each in ("hooks", "mcp") if each in wanted or (old is not None and each in old.what))
    insertions: list[Insertion] = []
    made: Made = ()
    with _naming_file(file):
        base = _without_ours(before, old, agent, wanted)
        after = base or ""
        for each in what:
            step, paths = (
                hook_entries.add(after, agent, brief=brief)
                if each == "hooks"
                else mcp_entries.add(after, agent, path, store)
            )
            after, made = insert(after, step), (*made, *paths)
            insertions += step
            if not step:  # a server of our name that is not ours
                what = tuple(kept for kept in what if kept != each)
    receipt = Receipt(
        agent=agent.name,
        what=what,
        scope=scope,
        file=str(file),
        after=_hash(after),
        insertions=tuple(insertions),
        made=made,
        made_file=base is None,
        made_folders=(old.made_folders if old else ()) or tuple(map(str, _missing_folders(file))),
        path=path,
        store=store,
        brief=brief,
    )
    return FileChange(agent.name, file, before, after, receipt)


def plan_disable(agents: Iterable[HookedAgent], project: Path, scope: Scope | None = None) -> list[FileChange]:
    """Plans what to remove: everything that receipts list, and our hooks in the usual files. A server with our name but
    no receipt may be somebody's own work."""
    changes: list[FileChange] = []
    known = {each.file: each for each in receipts()}
    for agent in agents:
        scopes = [each for each in agent.scopes if scope in (None, each)]
        files = [agent.settings(each, project) for each in scopes]
        files += [Path(each.file) for each in known.values() if each.agent == agent.name and each.scope in scopes]
        for file in dict.fromkeys(files):
            old = known.get(str(file))
            if old is None and not _mentions_us(file):
                continue  # it may even be broken: that is its owner's business
            before = _read(file)
            with _naming_file(file):
                changes.append(FileChange(agent.name, file, before, _without_ours(before, old, agent, ["hooks"]), old))
    return [each for each in changes if each.is_change or each.receipt is not None]


def _without_ours(text: str | None, old: Receipt | None, agent: HookedAgent, what: list[str]) -> str | None:
    """The file without our entries. None if it only exists because of us. `what` is removed even without a receipt."""
    if text is None:
        return None
    if old is None:
        return hook_entries.remove_entries(text, agent) if "hooks" in what else text
    base = undo_insertions(text, old.insertions)
    if base is not None and _hash(text) == old.after:
        return None if old.made_file and not base else base
    if "hooks" in old.what:
        text = hook_entries.remove_entries(text, agent, old.made)
    if "mcp" in old.what:
        text = mcp_entries.remove_entry(text, agent, old.path, old.made)
    if base is not None and _means_the_same(base, text, agent):
        text = base  # nobody touched our entries, so everything around them stays as it is
    return None if old.made_file and "".join(text.split()) in ("", "{}") else text


def _means_the_same(one: str, other: str, agent: HookedAgent) -> bool:
    def value(text: str) -> object:
        return {} if is_blank(text) else parse(text, comments=agent.has_comments).value

    with contextlib.suppress(BadJsonError):
        return value(one) == value(other)
    with contextlib.suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(one) == tomllib.loads(other)
    return False


# Files


def apply(changes: Iterable[FileChange], *, enables: bool) -> None:
    """Writes planned changes, each completely or not at all, and their receipts."""
    for change in changes:
        if change.is_change:
            _write(change)
        keep = [each for each in receipts() if each.file != str(change.file)]
        if enables and change.receipt is not None:
            _write_receipts(sorted([*keep, change.receipt], key=lambda each: each.file))
            continue
        _write_receipts(keep)
        for folder in reversed(change.receipt.made_folders if change.receipt else ()):
            with contextlib.suppress(OSError):  # somebody else put something there
                Path(folder).rmdir()
    if enables:
        os.makedirs(data_folder(), mode=0o700, exist_ok=True)
        prepare_gaps()


def _write(change: FileChange) -> None:
    file = Path(os.path.realpath(change.file))  # settings files are often symlinks
    if _read(change.file) != change.before:
        raise ConflictError(f"{change.file} was changed meanwhile", kind="settings-changed", hint="run it again")
    try:
        if change.after is None:
            file.unlink()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else None
        with atomic_file(file, mode=0o666) as out:
            if mode is not None:
                os.fchmod(out.fileno(), mode)
            out.write(change.after.encode())
    except OSError as exc:
        raise NotAllowedError(
            f"{change.file} cannot be written: {exc.strerror}", kind="not-writable", hint="nothing in it was changed"
        ) from exc


def _mentions_us(file: Path) -> bool:
    try:
        return b"wakelog" in file.read_bytes()
    except OSError:
        return file.exists()  # then reading it says what is wrong


def _read(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as exc:
        raise _broken(file, "it is not UTF-8") from exc
    except OSError as exc:
        raise NotAllowedError(f"{file} cannot be read: {exc.strerror}", kind="not-readable") from exc


@contextlib.contextmanager
def _naming_file(file: Path) -> Iterator[None]:
    try:
        yield
    except BadJsonError as exc:
        raise _broken(file, str(exc)) from exc


def _broken(file: Path, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"{file} is broken: {why}. It was left as it is.",
        kind="bad-agent-settings",
        hint="correct the file, and run it again",
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _missing_folders(file: Path) -> list[Path]:
    """The folders to create for a file, the outermost first."""
    out: list[Path] = []
    folder = file.parent
    while not folder.exists():
        out.insert(0, folder)
        folder = folder.parent
    return out


# Receipts


def receipts() -> list[Receipt]:
    """What is enabled, according to this user's data folder."""
    file = Path(data_folder()) / RECEIPTS
    try:
        return msgspec.json.decode(file.read_bytes(), type=described(list[Receipt]))
    except FileNotFoundError:
        return []
    except (msgspec.MsgspecError, OSError) as exc:
        raise CorruptLogError(
            f"{file}, which lists what wakelog enabled, cannot be read: {exc}",
            kind="bad-receipts",
            hint=f"delete {file}; wakelog disable --all then removes what it finds",
        ) from exc


def _write_receipts(kept: list[Receipt]) -> None:
    file = Path(data_folder()) / RECEIPTS
    try:
        if not kept:
            file.unlink(missing_ok=True)
            return
        os.makedirs(file.parent, mode=0o700, exist_ok=True)
        with atomic_file(file) as out:
            out.write(msgspec.json.format(msgspec.json.encode(kept), indent=1))
    except OSError as exc:
        raise NotAllowedError(f"{file} cannot be written: {exc.strerror}", kind="not-writable") from exc


def store_for(agent: str, folder: str, enabled: list[Receipt]) -> str:
    """The store for an agent's session in a folder: the one named when hooks were enabled, otherwise the one chosen for
    that folder, otherwise the user's own. An agent run never creates a store in a project."""
    named = [each for each in enabled if each.agent == agent and each.store]
    here = Path(folder) if folder and Path(folder).is_absolute() else None
    for each in sorted(named, key=lambda receipt: receipt.scope == "user"):
        if each.scope == "user" or (here is not None and here.is_relative_to(Path(each.file).parent.parent)):
            return each.store
    return (chosen_url(here) if here is not None else "") or user_store()
