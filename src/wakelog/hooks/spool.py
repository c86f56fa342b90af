"""What `wakelog hook AGENT` does: append its input to a spool, and print nothing.

It runs before and after every call of an agent. So it imports next to nothing of the standard library and nothing of
ours, opens no store, and always exits 0: a hook that fails or prints something changes what the agent does. The
environment is never recorded, because it holds the agent's keys.

The spool is a folder in the user's data folder, with one file per agent and day, and one line per record:

    w1 TIME AGENT FLAGS SIZE CRC TEXT

TIME is microseconds since 1970. FLAGS is `-`, `cut` (TEXT is only the beginning) or `held` (read once, and waiting for
what follows). SIZE and CRC are those of TEXT, in bytes. A record starts and ends with a line break, so that the next
one is intact after a write that was cut off. JSON has line breaks only between its tokens; they become spaces.

Records that could not be written are counted in `gaps`: a file that exists before it is needed and never grows, because
a full disk is the likely reason.
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
"""How many bytes of one input are kept. A longer one is a big tool result, which the agent's transcript has too."""
READ_MAX = 256 << 20
"""How many bytes are read at all: an agent that cannot write to its hook may treat that as a failure."""
PATIENCE_S = 3.0
"""How long to wait for the input. Agents wait five seconds for us."""
FILE_MAX = 512 << 20
"""The maximum size of one agent's file per day, if no command ever reads it."""
TRIES = 8
SHELLS = (b'"Bash"', b'"PowerShell"', b'"shell"', b'"run_shell_command"')
STARTS = (b'"SessionStart"', b'"UserPromptSubmit"', b'"BeforeAgent"')
CALLS = (b'"PreToolUse"', b'"PostToolUse', b'"BeforeTool"', b'"AfterTool"')
GAP_SLOT, GAP_SLOTS = 64, 64
VERSION = b"w1"
TAKEN = ".taken"
"""The suffix of files that intake has taken from the hooks (spool_files.py)."""


def data_folder() -> str:
    """The user's data folder for wakelog, like platformdirs, but without importing it."""
    if named := os.environ.get("WAKELOG_DATA"):
        return os.path.expanduser(named)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/wakelog")
    base = os.environ.get("XDG_DATA_HOME", "").strip()
    return os.path.join(base or os.path.expanduser("~/.local/share"), "wakelog")


def spool_folder() -> str:
    return os.path.join(data_folder(), "spool")


def is_waiting() -> bool:
    """Whether the spool has anything to record. Cheap: every command asks."""
    try:
        with os.scandir(spool_folder()) as found:
            return any(each.name.endswith((".log", TAKEN)) for each in found)
    except OSError:
        return False


def run_hook(args: Sequence[str]) -> None:
    """Runs `wakelog hook` for one call by an agent. Always returns, and prints nothing."""
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
            _append_context(agent, text)
    except BaseException as exc:  # an interrupt too: it is meant for the agent, not for its hook
        note_gap(agent, exc)
        return
    if "--brief" in args[1:]:
        try:
            from wakelog.hooks.start_brief import print_brief

            print_brief(agent, text)
        except BaseException:  # an agent without its brief is better than one that does not start
            return


def _append_context(agent: str, text: bytes) -> None:
    """Records what nobody can know later. Around a shell command: the current content of the files that it names. At
    the start of a session or turn: the repository, branch and commit."""
    found = b""
    try:
        if any(name in text for name in SHELLS) and any(name in text for name in CALLS):
            from wakelog.hooks.shell_files import files_around

            found = files_around(text)
        if not found and any(name in text for name in STARTS):
            from wakelog.hooks.git_place import git_record

            found = git_record(text)
    except (ValueError, AttributeError, TypeError, RecursionError):  # a malformed input
        return
    if found:
        append(agent, found)


def read_input(source: int) -> tuple[bytes, str]:
    """Reads stdin, at most `KEEP_MAX` of it. Nothing from a terminal, where a user would have to type it."""
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
    except (OSError, ValueError):  # stdin is missing or was closed
        if not kept:
            return b"", "-"
        return b"".join(kept), "cut"
    return b"".join(kept), "cut" if size > KEEP_MAX else "-"


def frame(agent: str, text: bytes, flags: str = "-", at_us: int = 0) -> bytes:
    """One record in the format of the spool."""
    import zlib

    line = text.replace(b"\r", b" ").replace(b"\n", b" ").strip()
    head = f"{at_us or time.time_ns() // 1000} {agent} {flags} {len(line)} {zlib.crc32(line):08x} "
    return b"\n" + VERSION + b" " + head.encode() + line + b"\n"


def append(agent: str, text: bytes, flags: str = "-") -> None:
    """Appends one record to today's file. Raises OSError if it is not written completely."""
    import fcntl

    folder = spool_folder()
    record = frame(agent, text, flags)
    name = os.path.join(folder, f"{agent}-{time.strftime('%Y%m%d', time.gmtime())}.log")
    for _ in range(TRIES):
        file = _open(name, folder)
        try:
            # Writers share the lock; intake takes the file with an exclusive one, for an instant. An intake that hangs
            # at that instant must not block us: then the record goes to a separate file.
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                name = os.path.join(folder, f"{agent}-{time.time_ns()}-{os.getpid()}.log")
                continue
            if not _is_at(file, name):
                continue  # intake took it between opening and locking
            if os.fstat(file).st_size > FILE_MAX:
                raise OSError(errno.EDQUOT, "no command reads the spool")
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
    """Marks the time of the agent's last record, as the modification time of an empty file."""
    mark = os.path.join(data_folder(), f"seen-{agent}")
    try:
        os.utime(mark)
    except FileNotFoundError:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT, 0o600))


# Records that could not be written


def gaps_file() -> str:
    return os.path.join(data_folder(), "gaps")


def prepare_gaps() -> None:
    """Creates the file for gaps at its full size."""
    try:
        file = os.open(gaps_file(), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(file, (b" " * (GAP_SLOT - 1) + b"\n") * GAP_SLOTS)
    finally:
        os.close(file)


def note_gap(agent: str, reason: BaseException) -> None:
    """Counts a lost record, if possible. The first slot is the count, the others are the newest gaps."""
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
    except BaseException:  # there is nowhere left to report it
        return
