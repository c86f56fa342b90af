"""How the command line fails: the exit code of each error, and the form of messages.

0 success · 1 the answer is "no" · 2 usage · 3 not found or ambiguous · 4 integrity · 5 busy or conflict
6 refused by a rule · 7 done in part · 70 internal error · 130 interrupted
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import TextIO

import click

import wakelog
from wakelog import errors

CODES: dict[type[Exception], int] = {
    errors.NotFoundError: 3,
    errors.ConflictError: 5,
    errors.NotAllowedError: 6,
    errors.InvalidInputError: 2,
    errors.UnsupportedError: 6,
    errors.CorruptLogError: 4,
    errors.DivergenceError: 1,
    errors.UnavailableError: 5,
    click.ClickException: 2,
}
_NO_COMMAND = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""A group without a command; its message is the help. click before 8.2 prints the help itself."""
RETRYABLE = (errors.ConflictError, errors.UnavailableError)
FAULT = 70
NO, INTEGRITY, PARTIAL = 1, 4, 7
"""Exit codes of answers that are not errors: "no", "something is damaged", and "done, but not all of it"."""


@contextlib.contextmanager
def extra_needed(what: str, extra: str) -> Iterator[None]:
    """Around an import of optional packages: turns an ImportError into an error that names the extra."""
    try:
        yield
    except ImportError as exc:
        raise errors.missing_extra(f"{what} needs {exc.name}", extra) from exc


def wants_color(stream: TextIO, choice: str = "auto") -> bool:
    """Whether text for this stream is coloured: as asked for, else as the environment says, else on a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def refused_write(exc: OSError) -> errors.WakelogError | None:
    """The error to show if the output could not be written, for want of room say; None for any other error."""
    if exc.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return None
    what = exc.filename or "the output"
    return errors.NotAllowedError(
        f"{what} cannot be written: {exc.strerror}", kind="not-writable", hint="free some space, or write elsewhere"
    )


def exit_code(exc: BaseException) -> int:
    return next((code for kind, code in CODES.items() if isinstance(exc, kind)), FAULT)


def show_error(exc: errors.WakelogError | click.ClickException, args: list[str]) -> None:
    """Prints the message and the hint on stderr; as JSON if the command line asks for JSON."""
    kind = exc.kind if isinstance(exc, errors.WakelogError) else "usage"
    message = exc.message if isinstance(exc, errors.WakelogError) else exc.format_message()
    hint = exc.hint if isinstance(exc, errors.WakelogError) else ""
    if "--json" in args or "--ndjson" in args:
        envelope = {"kind": kind, "message": message, "hint": hint or None, "retryable": isinstance(exc, RETRYABLE)}
        import json

        click.echo(json.dumps({"error": envelope}), err=True)
        return
    if isinstance(exc, _NO_COMMAND):
        exc.show()
        return
    from wakelog.cli.text import inert

    _say_loud("error:", f"{inert(message)}  [{kind}]", _color_choice(args))
    if hint:
        click.echo(f"  hint: {inert(hint)}", err=True)
    elif isinstance(exc, click.UsageError) and exc.ctx is not None:
        click.echo(f"  hint: {exc.ctx.command_path} --help", err=True)


def show_fault(exc: Exception) -> None:
    """Reports a bug of wakelog: one line for the user, and a file with the traceback for the report."""
    report = fault_report(exc)
    _say_loud("fault:", f"{type(exc).__name__}: this should not happen.")
    click.echo(f"  report: {report}", err=True)


def _say_loud(title: str, text: str, color: str = "auto") -> None:
    click.echo(f"{click.style(title, fg='red', bold=True)} {text}", err=True, color=wants_color(sys.stderr, color))


def _color_choice(args: list[str]) -> str:
    """What --color asks for. It is read from the words, since an error may come before they are parsed."""
    for word, following in zip(args, [*args[1:], ""], strict=True):
        chosen = following if word == "--color" else word.removeprefix("--color=") if "=" in word else ""
        if chosen in ("always", "never"):
            return chosen
    return "auto"


def fault_report(exc: Exception) -> str:
    """Writes the traceback of a bug into a file, and returns its name."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="wakelog-fault-", suffix=".txt", delete=False) as report:
        report.write(f"wakelog {wakelog.__version__}, Python {sys.version}\n\n")
        traceback.print_exception(exc, file=report)
    return report.name
