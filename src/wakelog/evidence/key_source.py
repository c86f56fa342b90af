"""Where a private key comes from: a file, a variable of the environment, or what a command prints.

A key is never an argument: arguments are in the list of processes, in the shell's history and in logs. Errors here name
the source, and never what was read from it.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

from wakelog.atomic_file import atomic_file
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError, UnavailableError
from wakelog.evidence.signed_note import PRIVATE, PrivateKey, PublicKey

COMMAND_TIMEOUT_S = 120.0
SIZE_MAX = 4096
HINT = "name a file, env:NAME or command:CMD"


def read_key(source: str) -> PrivateKey:
    """The private key of `PATH`, `file:PATH`, `env:NAME` or `command:CMD`. A command is run without a shell; what it
    prints is the key."""
    if PRIVATE in source:
        raise InvalidInputError(
            "a private key was given as an argument, where other users and logs can see it",
            kind="bad-anchor-key",
            hint=f"treat it as known: make a new one. Then {HINT}",
        )
    text = read_secret(source)
    try:
        return PrivateKey.parse(text.strip())
    except InvalidInputError as exc:
        shown = "the command" if source.startswith("command:") else source
        raise InvalidInputError(f"{shown} does not give a private key", kind=exc.kind, hint=exc.hint) from None


def read_secret(source: str) -> str:
    """What `PATH`, `file:PATH`, `env:NAME` or `command:CMD` holds, whatever it is."""
    kind, colon, rest = source.partition(":")
    if not source:
        raise InvalidInputError("no key was named", kind="bad-anchor-key", hint=HINT)
    if colon and kind == "env":
        return _from_environment(rest)
    if colon and kind == "command":
        return _from_command(rest)
    return _from_file(Path(rest if colon and kind == "file" else source).expanduser())


def write_key(key: PrivateKey, path: Path) -> None:
    """Keeps a new key in a file that only its owner reads. An existing file is never replaced."""
    try:
        with atomic_file(path, replace=False, mode=0o600) as out:
            out.write(key.to_text().encode() + b"\n")
    except FileExistsError as exc:
        raise NotAllowedError(
            f"{path} already exists, and may be a key that is in use", kind="file-exists", hint="choose another name"
        ) from exc
    except OSError as exc:
        raise NotAllowedError(f"{path} cannot be written: {exc.strerror or exc}", kind="not-writable") from exc


def read_public_key(given: str) -> PublicKey:
    """A public key as it is written, or from a file that holds one."""
    if "+" in given and not os.path.exists(given):
        return PublicKey.parse(given)
    try:
        return PublicKey.parse(Path(given).expanduser().read_text(encoding="utf-8")[:SIZE_MAX])
    except (OSError, UnicodeDecodeError) as exc:
        raise NotFoundError(
            f"there is no public key in {given}: {getattr(exc, 'strerror', None) or 'it is not text'}",
            kind="anchor-key-not-found",
            hint="pass NAME+ID+KEY as wakelog anchor-key prints it, or a file with it",
        ) from exc


def _from_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISREG(mode) and mode & 0o077:
                raise NotAllowedError(
                    f"the key in {path} can be read by other users", kind="key-not-private", hint=f"chmod 600 {path}"
                )
            return file.read(SIZE_MAX).decode(errors="replace")
    except OSError as exc:
        raise NotFoundError(
            f"the key in {path} cannot be read: {exc.strerror}", kind="anchor-key-not-found", hint=HINT
        ) from exc


def _from_environment(name: str) -> str:
    if not os.environ.get(name):
        raise NotFoundError(f"the variable {name} is not set", kind="anchor-key-not-found", hint=HINT)
    return os.environ[name]


def _from_command(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as exc:
        raise InvalidInputError(f"the command for the key is not closed: {exc}", kind="bad-anchor-key") from exc
    if not words:
        raise InvalidInputError("command: names no command", kind="bad-anchor-key", hint=HINT)
    try:
        # What it says on stderr goes to the person who started us: it may ask for a passphrase.
        done = subprocess.run(words, stdout=subprocess.PIPE, timeout=COMMAND_TIMEOUT_S, check=False)
    except OSError as exc:
        raise NotFoundError(f"{words[0]} cannot be started: {exc.strerror}", kind="no-command", hint=HINT) from exc
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{words[0]} gave no key within {COMMAND_TIMEOUT_S:.0f} seconds") from None
    if done.returncode:
        raise UnavailableError(
            f"{words[0]} gave no key: it ended with {done.returncode}",
            kind="anchor-key-not-found",
            hint="run it by hand",
        )
    return done.stdout[:SIZE_MAX].decode(errors="replace")
