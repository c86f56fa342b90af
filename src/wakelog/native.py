"""The native core, where it is installed: the same functions over bytes, in Rust (package `wakelog-core`, `core/`).

wakelog is complete without it. Encoding, sealing, packing and looking for secrets are written in Python, and that is
what the stored form and every error mean. The core does the same work faster. What it does not take, it hands back: the
Python function then runs, and has the last word. `WAKELOG_PURE=1` leaves the core aside.
"""

from __future__ import annotations

import os
from typing import Any

INTERFACE = 3
"""What the core and this version must agree on. A core of another interface is not used."""


def _load() -> tuple[Any, str]:
    """The core, or None, and why."""
    if os.environ.get("WAKELOG_PURE", "0") not in ("", "0"):
        return None, "WAKELOG_PURE is set"
    try:
        import wakelog_core
    except ImportError as exc:
        missing = isinstance(exc, ModuleNotFoundError) and exc.name == "wakelog_core"
        return None, "wakelog-core is not installed" if missing else f"wakelog-core cannot be loaded: {exc}"
    version = wakelog_core.__version__
    if wakelog_core.INTERFACE != INTERFACE:
        return None, f"wakelog-core {version} is for another version of wakelog"
    return wakelog_core, f"wakelog-core {version}"


core, reason = _load()
IN_USE = f"{'pure Python' if core is None else 'native'} ({reason})"
"""Which of the two is in use, for people."""
