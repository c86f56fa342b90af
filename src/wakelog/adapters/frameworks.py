"""Which releases of a framework an adapter was held against, and what to say where it is missing or another."""

import re
import warnings
from importlib import metadata


def missing(framework: str, extra: str) -> ImportError:
    """What an adapter raises in place of the ImportError of its framework."""
    return ImportError(f"{framework} is not installed here: pip install 'wakelog[{extra}]'")


def warn_outside(distribution: str, *, oldest: str, newest: str) -> None:
    """Warn where the installed release lies outside the range the adapter was tested with. An adapter calls this
    once, when it is imported."""
    installed = metadata.version(distribution)
    if not _numbers(oldest) <= _numbers(installed) <= _numbers(newest):
        warnings.warn(
            f"wakelog's adapter was tested with {distribution} {oldest} to {newest}, and {installed} is installed. "
            "It may still work; report what does not.",
            stacklevel=3,
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The release part of a version: `1.2.3rc1` is (1, 2, 3)."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in release.group().split(".")) if release else ()
