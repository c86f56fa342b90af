"""Reads a secret from a file, an environment variable, the system's keyring, or the output of a command.

A secret is never an argument, because arguments appear in the process list, the shell's history and logs. Errors name
the source, never the secret.
"""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

from wakelog.atomic_file import atomic_file
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError, UnavailableError, missing_extra

COMMAND_TIMEOUT_S = 120.0
SIZE_MAX = 4096
HINT = "name a file, env:NAME, keyring:SERVICE/NAME or command:CMD"


def read_secret(source: str) -> str:
    """Reads the text from `PATH`, `file:PATH`, `env:NAME`, `keyring:SERVICE/NAME` or `command:CMD`. A command runs
    without a shell."""
    kind, colon, rest = source.partition(":")
    if not source:
        raise InvalidInputError("no key was named", kind="bad-key-source", hint=HINT)
    if colon and kind == "env":
        return _from_environment(rest)
    if colon and kind == "keyring":
        return _from_keyring(rest)
    if colon and kind == "command":
        return _from_command(rest)
    return _from_file(Path(rest if colon and kind == "file" else source).expanduser())


def describe_source(source: str) -> str:
    """Returns a source for messages. A command is not shown, because it may contain secrets."""
    return "the command" if source.startswith("command:") else source


def write_secret(text: str, path: Path) -> None:
    """Writes a new secret to a file that only its owner can read. An existing file is never replaced."""
    try:
        with atomic_file(path, replace=False, mode=0o600) as out:
            out.write(text.encode() + b"\n")
    except FileExistsError as exc:
        raise NotAllowedError(
            f"{path} already exists, and may be a key that is in use", kind="file-exists", hint="choose another name"
        ) from exc
    except OSError as exc:
        raise NotAllowedError(f"{path} cannot be written: {exc.strerror or exc}", kind="not-writable") from exc


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
            f"the key in {path} cannot be read: {exc.strerror}", kind="secret-not-found", hint=HINT
        ) from exc


def _from_environment(name: str) -> str:
    if not os.environ.get(name):
        raise NotFoundError(f"the variable {name} is not set", kind="secret-not-found", hint=HINT)
    return os.environ[name]


def _from_keyring(place: str) -> str:
    service, slash, name = place.rpartition("/")
    if not slash or not service or not name:
        raise InvalidInputError(f"keyring:{place} does not name SERVICE/NAME", kind="bad-key-source", hint=HINT)
    try:
        import keyring
    except ImportError as exc:
        raise missing_extra("the system's keyring needs the library keyring", "keyring") from exc
    try:
        password = keyring.get_password(service, name)
    except Exception as exc:  # a backend is foreign code and may raise anything
        raise UnavailableError(
            f"the system's keyring did not answer: {type(exc).__name__}",
            kind="secret-not-found",
            hint="unlock it, or " + HINT,
        ) from exc
    if not password:
        raise NotFoundError(
            f"the system's keyring has nothing under {place}",
            kind="secret-not-found",
            hint=f"keyring set {service} {name}",
        )
    return str(password)


def _from_command(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as exc:
        raise InvalidInputError(f"the command for the key is not closed: {exc}", kind="bad-key-source") from exc
    if not words:
        raise InvalidInputError("command: names no command", kind="bad-key-source", hint=HINT)
    try:
        # stderr stays connected to the terminal: the command may ask for a passphrase.
        process = subprocess.run(words, stdout=subprocess.PIPE, timeout=COMMAND_TIMEOUT_S, check=False)
    except OSError as exc:
        raise NotFoundError(f"{words[0]} cannot be started: {exc.strerror}", kind="no-command", hint=HINT) from exc
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{words[0]} gave no key within {COMMAND_TIMEOUT_S:.0f} seconds") from None
    if process.returncode:
        raise UnavailableError(
            f"{words[0]} gave no key: it ended with {process.returncode}",
            kind="secret-not-found",
            hint="run it in a terminal to see why",
        )
    return process.stdout[:SIZE_MAX].decode(errors="replace")
