"""What `wakelog hook AGENT` does: append what it was told to a spool, and say nothing.

It runs before and after every call of an agent, so it imports next to nothing of the standard library and nothing of
ours, opens no store, and always exits 0: a hook that fails or prints something changes what the agent does. The
environment is never recorded, because it carries the agent's keys.

The spool is a folder in the user's data folder: one file an agent and day, one line a record:

    w1 TIME AGENT FLAGS SIZE CRC TEXT

TIME is microseconds since 1970; FLAGS is `-`, `cut` (TEXT is only the beginning) or `held` (taken in once, and waiting
for what follows); SIZE and CRC are of TEXT, in bytes. A record begins and ends with a line break, so that the next one
is whole after a write that was cut off. JSON has line breaks only between its parts; they become spaces.

What could not be written is counted in `gaps`: a file that is there before it is needed, and never grows, because a
full disk is the likely reason.
"""

from __future__ import annotations

import errno
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

AGENTS = ("claude-code", "codex", "gemini", "codex-notify")
KEEP_MAX = 4 << 20
"""So much of one input is kept. What is longer is a big result of a tool, which the agent's transcript has too."""
READ_MAX = 256 << 20
"""So much is read at all: an agent that cannot write to its hook may take that as a failure."""
PATIENCE_S = 3.0
"""How long an input may take to come. Agents wait five seconds for us."""
FILE_MAX = 512 << 20
"""So much is kept of one agent and day when no command ever takes it in."""
TRIES = 8
SHELLS = (b'"Bash"', b'"PowerShell"', b'"shell"', b'"run_shell_command"')
BEGINNINGS = (b'"SessionStart"', b'"UserPromptSubmit"', b'"BeforeAgent"')
CALLS = (b'"PreToolUse"', b'"PostToolUse', b'"BeforeTool"', b'"AfterTool"')
GAP_SLOT, GAP_SLOTS = 64, 64
VERSION = b"w1"
TAKEN = ".taken"
"""How the name of a file ends that was taken away from the hooks (spool_files.py)."""


def data_folder() -> str:
    """The user's data folder for wakelog, as platformdirs has it; without importing that."""
    if named := os.environ.get("WAKELOG_DATA"):
        return os.path.expanduser(named)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/wakelog")
    base = os.environ.get("XDG_DATA_HOME", "").strip()
    return os.path.join(base or os.path.expanduser("~/.local/share"), "wakelog")


def spool_folder() -> str:
    return os.path.join(data_folder(), "spool")


def is_waiting() -> bool:
    """Whether there is anything to take in. Cheap: every command asks."""
    try:
        with os.scandir(spool_folder()) as found:
            return any(each.name.endswith((".log", TAKEN)) for each in found)
    except OSError:
        return False


def run_hook(args: Sequence[str]) -> None:
    """One call by an agent: the whole of `wakelog hook`. Whatever happens, it returns and prints nothing."""
    agent = args[0] if args and args[0] in AGENTS else "unknown"
    try:
        if agent == "unknown":
            raise ValueError("there is no such agent")
        if agent == "codex-notify":
            text, flags = args[-1].encode("utf-8", "replace") if len(args) > 1 else b"", "-"
        else:
            text, flags = read_input(0)
        if len(text) > KEEP_MAX:
            text, flags = text[:KEEP_MAX], "cut"
        if text.strip():
            append(agent, text, flags)
            _append_beside(agent, text)
    except BaseException as exc:  # an interrupt too: whoever interrupts the agent does not mean its hook
        note_gap(agent, exc)
        return
    if "--brief" in args[1:]:
        try:
            from wakelog.hooks.start_brief import print_brief

            print_brief(agent, text)
        except BaseException:  # an agent that starts without its brief is better than one that does not start
            return


def _append_beside(agent: str, text: bytes) -> None:
    """What nobody knows later. Around a shell command: the files that it names, as they are now. When a session or a
    turn begins: which repository, branch and commit the agent works on."""
    found = b""
    try:
        if any(name in text for name in SHELLS) and any(name in text for name in CALLS):
            from wakelog.hooks.shell_files import files_around

            found = files_around(text)
        if not found and any(name in text for name in BEGINNINGS):
            from wakelog.hooks.git_place import place_of

            found = place_of(text)
    except (ValueError, AttributeError, TypeError, RecursionError):  # an input that is not as it should be
        return
    if found:
        append(agent, found)


def read_input(source: int) -> tuple[bytes, str]:
    """What stands on stdin, at most `KEEP_MAX` of it. Nothing from a terminal, where a person would have to type it."""
    import select

    kept: list[bytes] = []
    size = 0
    end = time.monotonic() + PATIENCE_S
    try:
        if os.isatty(source):
            return b"", "-"
        while size < READ_MAX:
            left = end - time.monotonic()
            if left <= 0 or not select.select([source], [], [], left)[0]:
                return b"".join(kept), "cut"
            part = os.read(source, 1 << 20)
            if not part:
                break
            if size < KEEP_MAX:
                kept.append(part[: KEEP_MAX - size])
            size += len(part)
    except (OSError, ValueError):  # there is no stdin, or it went away
        if not kept:
            return b"", "-"
        return b"".join(kept), "cut"
    return b"".join(kept), "cut" if size > KEEP_MAX else "-"


def frame(agent: str, text: bytes, flags: str = "-", at_us: int = 0) -> bytes:
    """One record as it stands in the spool."""
    import zlib

    line = text.replace(b"\r", b" ").replace(b"\n", b" ").strip()
    head = f"{at_us or time.time_ns() // 1000} {agent} {flags} {len(line)} {zlib.crc32(line):08x} "
    return b"\n" + VERSION + b" " + head.encode() + line + b"\n"


def append(agent: str, text: bytes, flags: str = "-") -> None:
    """Writes one record to today's file. OSError when it is not, or not wholly, written."""
    import fcntl

    folder = spool_folder()
    record = frame(agent, text, flags)
    name = os.path.join(folder, f"{agent}-{time.strftime('%Y%m%d', time.gmtime())}.log")
    for _ in range(TRIES):
        file = _open(name, folder)
        try:
            # Shared between writers; who takes the file away holds it alone, for an instant. One that is stopped at
            # that instant must not stop us: then the record goes to a file of its own.
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                name = os.path.join(folder, f"{agent}-{time.time_ns()}-{os.getpid()}.log")
                continue
            if not _is_at(file, name):
                continue  # taken away between opening and locking
            if os.fstat(file).st_size > FILE_MAX:
                raise OSError(errno.EDQUOT, "nobody takes the spool in")
            if os.write(file, record) != len(record):
                raise OSError(errno.ENOSPC, "only a part could be written")
        finally:
            os.close(file)
        _mark_seen(agent)
        return
    raise OSError(errno.EAGAIN, "the spool was taken away each time")


def _open(name: str, folder: str) -> int:
    how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(name, how, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        prepare_gaps()
        return os.open(name, how, 0o600)


def _is_at(file: int, name: str) -> bool:
    try:
        there = os.stat(name)
    except OSError:
        return False
    here = os.fstat(file)
    return (here.st_ino, here.st_dev) == (there.st_ino, there.st_dev)


def _mark_seen(agent: str) -> None:
    """The time of the last record of an agent is that of an empty file."""
    mark = os.path.join(data_folder(), f"seen-{agent}")
    try:
        os.utime(mark)
    except FileNotFoundError:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT, 0o600))


# What could not be written


def gaps_file() -> str:
    return os.path.join(data_folder(), "gaps")


def prepare_gaps() -> None:
    """Makes the file for gaps, of its full size."""
    try:
        file = os.open(gaps_file(), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(file, (b" " * (GAP_SLOT - 1) + b"\n") * GAP_SLOTS)
    finally:
        os.close(file)


def note_gap(agent: str, reason: BaseException) -> None:
    """Counts a record that is lost, where that is possible. The first slot is the count, the others the newest."""
    try:
        import fcntl

        file = os.open(gaps_file(), os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            count = int(os.pread(file, GAP_SLOT, 0).strip() or b"0")
            why = os.strerror(reason.errno) if isinstance(reason, OSError) and reason.errno else type(reason).__name__
            text = f"{time.time_ns() // 1000} {agent} {why}".encode("ascii", "replace")[: GAP_SLOT - 1]
            slot = 1 + count % (GAP_SLOTS - 1)
            os.pwrite(file, text.ljust(GAP_SLOT - 1) + b"\n", slot * GAP_SLOT)
            os.pwrite(file, str(count + 1).encode().ljust(GAP_SLOT - 1) + b"\n", 0)
        finally:
            os.close(file)
    except BaseException:  # there is nowhere left to say it
        return
