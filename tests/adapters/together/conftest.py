"""These tests run where several frameworks are installed: `make test-adapters ONLY=together`."""

from importlib.util import find_spec

FRAMEWORKS = ("langgraph", "agents", "pydantic_ai")
collect_ignore_glob = [] if all(map(find_spec, FRAMEWORKS)) else ["test_*.py"]
