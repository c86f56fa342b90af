"""The async bridge: runs a plain function in a worker thread and awaits it.

Engines and verbs are plain synchronous calls. `await session.aio.append(…)` runs the same method in a thread, under
asyncio or, if anyio is installed, under trio. The event loop is not blocked.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from wakelog.runtime.worker_threads import start_in_thread

R = TypeVar("R")


async def in_thread(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Runs a function in a worker thread. A cancelled append may still be stored; repeat it with the same commit id."""
    work = functools.partial(function, *args, **kwargs)
    if on_asyncio():
        call = start_in_thread(work)
        await call.wait()
        return call.result()
    import anyio.to_thread

    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


async def in_thread_to_the_end(function: Callable[..., R], *args: Any) -> R:
    """The same, but a cancellation is delayed until the function has returned."""
    if on_asyncio():
        import asyncio

        call = start_in_thread(functools.partial(function, *args))
        cancelled: asyncio.CancelledError | None = None
        while not call.is_done:
            try:
                await call.wait()
            except asyncio.CancelledError as exc:
                cancelled = exc  # may happen more than once
        if cancelled is not None:
            raise cancelled from call.error
        return call.result()
    import anyio.lowlevel
    import anyio.to_thread

    with anyio.CancelScope(shield=True):
        result = await anyio.to_thread.run_sync(functools.partial(function, *args))
    await anyio.lowlevel.checkpoint_if_cancelled()  # raise the cancellation here, not inside the next call
    return result


def on_asyncio() -> bool:
    # If asyncio is not imported, it is not running. Importing it takes as long as the rest of the library.
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None
