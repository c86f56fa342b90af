"""Reports a framework that is missing, or whose release was not tested with the adapter."""

import re
import warnings
from importlib import metadata


def missing(framework: str, extra: str) -> ImportError:
    """The error that an adapter raises instead of its framework's ImportError."""
    return ImportError(f"{framework} is not installed here: pip install 'wakelog[{extra}]'")


def warn_outside(distribution: str, *, oldest: str, newest: str) -> None:
    """Warns if the installed release is outside the range that the adapter was tested with. A later patch of the
    newest minor release is inside: frameworks make one each week. Adapters call this on import."""
    installed = metadata.version(distribution)
    if _numbers(installed) < _numbers(oldest) or _numbers(installed)[:2] > _numbers(newest)[:2]:
        warnings.warn(
            f"wakelog's adapter was tested with {distribution} {oldest} to {newest}, and {installed} is installed. "
            "It may still work; report what does not.",
            stacklevel=3,
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The release part of a version: `1.2.3rc1` is (1, 2, 3)."""
    release = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in release.group().split(".")) if release else ()
