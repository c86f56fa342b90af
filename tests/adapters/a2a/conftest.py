"""These tests run where the A2A SDK is installed: `make test-adapters ONLY=a2a`."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("a2a") else ["test_*.py"]
