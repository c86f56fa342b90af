"""These tests run where CrewAI is installed: `make test-adapters ONLY=crewai`."""

import importlib.util
import os
import warnings

collect_ignore_glob = [] if importlib.util.find_spec("crewai") else ["test_*.py"]
if not collect_ignore_glob:
    # Before it is imported: it reports its use over the network, and asks about that on a terminal.
    os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, while it is imported
        import crewai.flow.flow
        import crewai.state.checkpoint_config  # noqa: F401
