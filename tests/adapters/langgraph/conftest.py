"""These tests run where LangGraph is installed: `make test-adapters ONLY=langgraph`."""

import importlib.util
import warnings

if importlib.util.find_spec("langgraph"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, while it is imported
        import langgraph.checkpoint.serde.jsonplus
        import langgraph.prebuilt  # noqa: F401
