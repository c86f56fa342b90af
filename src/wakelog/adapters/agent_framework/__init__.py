"""Microsoft Agent Framework: stores workflow checkpoints, agent histories and session snapshots.

from wakelog.adapters.agent_framework import WakelogHistoryProvider

agent = Agent(client, context_providers=[WakelogHistoryProvider("agents.db")])
"""

from typing import TYPE_CHECKING, Any

from wakelog.adapters import frameworks

try:
    import agent_framework  # noqa: F401 - only to check that it is installed
except ImportError as exc:
    raise frameworks.missing("Microsoft Agent Framework", "agent-framework") from exc

from wakelog.adapters.agent_framework.checkpoints import WakelogCheckpointStorage
from wakelog.adapters.agent_framework.history import WakelogHistoryProvider

if TYPE_CHECKING:
    from wakelog.adapters.agent_framework.session_store import WakelogAgentSessionStore

frameworks.warn_outside("agent-framework-core", oldest="1.20.0", newest="1.23.0")

__all__ = ["WakelogCheckpointStorage", "WakelogHistoryProvider", "WakelogAgentSessionStore"]


def __getattr__(name: str) -> Any:
    """Loads the session store on first use: the framework warns that its class is experimental, and only users of the
    class should see the warning."""
    if name != "WakelogAgentSessionStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wakelog.adapters.agent_framework.session_store import WakelogAgentSessionStore

    return WakelogAgentSessionStore
