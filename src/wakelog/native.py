"""Loads the native core, if it is installed: the same functions over bytes, in Rust (package `wakelog-core`, `core/`).

wakelog is complete without it. Encoding, sealing, packing and finding secrets are written in Python, which defines the
stored form and every error. The core does the same work faster. Input that it cannot handle goes to the Python
function. `WAKELOG_PURE=1` turns the core off.
"""

from __future__ import annotations

import os
from typing import Any

INTERFACE = 8
"""The version of the interface. A core with another one is not used."""


def _load() -> tuple[Any, str]:
    """Returns the core, or None, and the reason."""
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
"""Which of the two is in use, as text."""
