"""These tests run where the framework is installed: `make test-adapters ONLY=agent-framework`."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("agent_framework") else ["test_*.py"]
