"""These tests run where AG-UI's package is installed: `make test-adapters ONLY=ag-ui`."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("ag_ui") else ["test_*.py"]
