"""These tests run where Google ADK is installed: `make test-adapters ONLY=adk`."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("google.adk") else ["test_*.py"]
