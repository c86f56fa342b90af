"""`wakelog.instrument`: wraps the request methods of a client library, and unwraps them again.

A wrapper calls the original with the same arguments, and returns the same object or raises the same exception.
Recording happens beside it, and its failures are swallowed.
"""

from __future__ import annotations

import atexit
import contextvars
import importlib
import itertools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.instruments.lanes import FileCapture, LaneName
from wakelog.instruments.model_request import read_request
from wakelog.instruments.recorder import ConversationRecorder, PassingCall, warn_by_log
from wakelog.model.values import Value
from wakelog.runtime.ambient import current, current_replay
from wakelog.session import Session
from wakelog.store import Store
from wakelog.store import open as open_store

OFF = "WAKELOG_INSTRUMENT"
"""If this variable is 0, `instrument` does nothing."""

# Library → our module for it, and the module that it needs.
_LIBRARIES = {
    "openai": ("wakelog.instruments.openai_anthropic", "openai"),
    "anthropic": ("wakelog.instruments.openai_anthropic", "anthropic"),
    "litellm": ("wakelog.instruments.litellm", "litellm"),
    "google-genai": ("wakelog.instruments.google_genai", "google.genai"),
}

Point = tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]]
"""A method to wrap: its owner, its name, and the wrapper."""

_lock = threading.Lock()
_patches: dict[str, list[MethodPatch]] = {}
_recorder: ConversationRecorder | None = None
_target: dict[str, Any] = {}
_runs = itertools.count(1)
_is_inside: contextvars.ContextVar[bool] = contextvars.ContextVar("wakelog.instrumented", default=False)


def instrument(
    *libraries: str, session: Session[Any] | None = None, store: Store | str | None = None, files: bool = False
) -> None:
    """Records the model calls of these client libraries ("openai", "anthropic", "litellm", "google-genai") from now on,
    without any other change in the program.

    A call is recorded in the session whose turn is open where it is made, otherwise in `session`, otherwise in a new
    session of `store` (by default the default store), named after the program. The tools that the model requests are
    recorded too, when the next request has their results. With `files`, a session made for this also records what the
    tools changed in the project's folder. Nothing here raises into the program: if recording fails, one warning is
    logged and the gap is noted. `WAKELOG_INSTRUMENT=0` in the environment turns it off.
    """
    for library in libraries:
        if library not in _LIBRARIES:
            known = ", ".join(_LIBRARIES)
            raise InvalidInputError(
                f"{library!r} cannot be instrumented", kind="unknown-library", hint=f"one of {known}"
            )
    if not libraries:
        raise InvalidInputError(
            "no library is named", kind="unknown-library", hint='for example wakelog.instrument("openai")'
        )
    if os.environ.get(OFF) == "0":
        return
    loaded = {library: _load(library) for library in libraries}
    with _lock:
        if session is not None or store is not None or files:
            _set_target(session, store, files)
        for library, points in loaded.items():
            if library not in _patches:
                _patches[library] = [MethodPatch(*point) for point in points]


def uninstrument(*libraries: str) -> None:
    """Stops recording the model calls of these libraries, or of all. With the last one, everything left is written, and
    the session that was made for this ends."""
    global _recorder
    with _lock:
        for library in libraries or tuple(_patches):
            for patch in _patches.pop(library, ()):
                patch.remove()
        ended = None if _patches else _recorder
        if ended is not None:
            _recorder = None
            _target.clear()
    if ended is not None:
        ended.close()


def _load(library: str) -> Sequence[Point]:
    home, needed = _LIBRARIES[library]
    try:
        module = importlib.import_module(needed)
    except ImportError as exc:
        raise NotFoundError(
            f"the library {library} is not installed here", kind="library-not-found", hint=f"pip install {library}"
        ) from exc
    return tuple(importlib.import_module(home).points(module))


class MethodPatch:
    """One wrapped method."""

    def __init__(self, owner: Any, name: str, watch: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._owner = owner
        self._name = name
        self._original = getattr(owner, name)
        self._wrap = watch(self._original)
        setattr(owner, name, self._wrap)

    def remove(self) -> None:
        # If somebody else wrapped it since, our wrapper stays, and finds no recorder.
        if getattr(self._owner, self._name) is self._wrap:
            setattr(self._owner, self._name, self._original)


# For the wrappers


def passing_call(path: str, body: Callable[[], Value], provider: str | None = None) -> PassingCall | None:
    """The call that a client is about to make, if it calls a model and is to be recorded. Never raises."""
    try:
        if not _patches or _is_inside.get() or current_replay() is not None:
            return None
        request = read_request(path, body(), provider)
        return _current_recorder().asked(request, current()) if request is not None else None
    except Exception as exc:
        warn_once(exc)
        return None


_warned: list[str] = []


def warn_once(error: Exception) -> None:
    """Logs an unreadable request once: the program may send many."""
    if not _warned:
        _warned.append(repr(error))
        warn_by_log(f"model calls go on but are not recorded: {error!r}")


def enter_call() -> contextvars.Token[bool]:
    """Marks that a call is running: a client that calls another one is recorded once."""
    return _is_inside.set(True)


def leave_call(token: contextvars.Token[bool]) -> None:
    _is_inside.reset(token)


def wait(call: PassingCall) -> None:
    """Waits until the last news of a call is stored, within a limit."""
    if _recorder is not None:
        _recorder.writer.wait(call.last)


async def wait_async(call: PassingCall) -> None:
    if _recorder is not None:
        await _recorder.writer.wait_async(call.last)


# Where it is recorded


def _current_recorder() -> ConversationRecorder:
    global _recorder
    with _lock:
        if _recorder is None or _recorder.writer.pid != os.getpid():  # a forked child has its own recorder
            _recorder = ConversationRecorder(
                _SessionOpener(**_target),
                source="instrument",
                is_ours="session" not in _target,
                holds_answers="files" in _target,
            )
            atexit.unregister(_close_now)  # a forked child may have it already
            atexit.register(_close_now)
        return _recorder


def _set_target(session: Session[Any] | None, store: Store | str | None, files: bool) -> None:
    global _recorder
    _target.clear()
    given = {"session": session, "store": store, "files": files or None}
    _target.update({name: value for name, value in given.items() if value is not None})
    before, _recorder = _recorder, None
    if before is not None:
        before.close()


class _SessionOpener:
    """Opens the sessions for recording, when the first one is needed."""

    def __init__(
        self, session: Session[Any] | None = None, store: Store | str | None = None, files: bool = False
    ) -> None:
        self._session = session
        self._files = FileCapture() if files else None
        self._store = store if isinstance(store, Store) else None
        self._url = store if isinstance(store, str) else None
        self._name = LaneName(program_name(), os.getpid(), next(_runs))

    def __call__(self, number: int) -> Session[Any]:
        if self._session is not None and number == 1:
            return self._session
        if self._session is not None and isinstance(self._session.store, Store):
            return self._session.store.session(f"{self._session.name or self._session.id}-{number}")
        if self._store is None:
            self._store = open_store(self._url)
        made = self._store.session(self._name(number), agent=self._name.program)
        if self._files is not None:
            self._files.start(made)
        return made


def program_name() -> str:
    """The name of the running program: its script, or its package."""
    path = Path(sys.argv[0] if sys.argv else "")
    stem = path.parent.name if path.stem == "__main__" else path.stem
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in stem)[:60].strip("-.") or "python"


def _close_now() -> None:
    if _recorder is not None:
        _recorder.close()
