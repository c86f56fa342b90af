"""Google ADK: session, artifact and memory services over a store.

from wakelog.adapters.adk import WakelogSessionService

runner = Runner(agent=agent, app_name="shop", session_service=WakelogSessionService("agents.db"))
"""

from wakelog.adapters import frameworks

try:
    import google.adk.sessions  # noqa: F401 - only to check that it is installed
except ImportError as exc:
    raise frameworks.missing("Google ADK", "adk") from exc

from wakelog.adapters.adk.artifacts import WakelogArtifactService
from wakelog.adapters.adk.memory import WakelogMemoryService
from wakelog.adapters.adk.sessions import WakelogSessionService

frameworks.warn_outside("google-adk", oldest="2.0.0", newest="2.13.0")

__all__ = ["WakelogArtifactService", "WakelogMemoryService", "WakelogSessionService"]
