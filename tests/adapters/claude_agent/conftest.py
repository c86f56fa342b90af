"""These tests run where the SDK is installed: `make test-adapters ONLY=claude-agent`."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("claude_agent_sdk") else ["test_*.py"]
