"""These tests run where Strands is installed: `make test-adapters ONLY=strands`."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("strands") else ["test_*.py"]
