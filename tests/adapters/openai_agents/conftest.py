"""These tests run where the SDK is installed: `make test-adapters ONLY=openai-agents`."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("agents") else ["test_*.py"]
