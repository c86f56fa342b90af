"""These tests run where Google ADK is installed: `make test-adapters ONLY=adk`."""

import importlib.util


def _is_here() -> bool:
    try:
        return importlib.util.find_spec("google.adk") is not None
    except ModuleNotFoundError:  # nothing of Google's is
        return False


collect_ignore_glob = [] if _is_here() else ["test_*.py"]
