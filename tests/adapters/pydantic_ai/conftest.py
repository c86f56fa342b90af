"""These tests run where the framework is installed: `make test-adapters ONLY=pydantic-ai`."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("pydantic_ai") else ["test_*.py"]
