"""The async bridge: runs a plain function in a worker thread and awaits it.

Engines and verbs are plain synchronous calls. `await session.aio.append(…)` runs the same method in a thread, under
asyncio or, if anyio is installed, under trio. The event loop is not blocked.
"""

from __future__ import annotations

import contextvars
import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

R = TypeVar("R")


async def in_thread(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Runs a function in a worker thread. A cancelled append may still be stored; repeat it with the same commit id."""
    work = functools.partial(function, *args, **kwargs)
    if on_asyncio():
        import asyncio

        return await asyncio.to_thread(work)
    import anyio.to_thread

    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


async def in_thread_to_the_end(function: Callable[..., R], *args: Any) -> R:
    """The same, but a cancellation is delayed until the function has returned."""
    if on_asyncio():
        import asyncio

        # A future, not a task: nothing can cancel it, not even a loop that shuts down.
        context = contextvars.copy_context()
        work = asyncio.get_running_loop().run_in_executor(None, functools.partial(context.run, function, *args))
        cancelled: asyncio.CancelledError | None = None
        while not work.done():
            try:
                await asyncio.wait({work})
            except asyncio.CancelledError as exc:
                cancelled = exc  # may happen more than once
        if cancelled is not None:
            raise cancelled from work.exception()
        return work.result()
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
