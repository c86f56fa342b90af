"""Microsoft Agent Framework: checkpoints of workflows, histories of agents and snapshots of sessions in a store.

from wakelog.adapters.agent_framework import WakelogHistoryProvider

agent = Agent(client, context_providers=[WakelogHistoryProvider("agents.db")])
"""

from typing import TYPE_CHECKING, Any

from wakelog.adapters import frameworks

try:
    import agent_framework  # noqa: F401 - only asked whether it is there
except ImportError as exc:
    raise frameworks.missing("Microsoft Agent Framework", "agent-framework") from exc

from wakelog.adapters.agent_framework.checkpoints import WakelogCheckpointStorage
from wakelog.adapters.agent_framework.history import WakelogHistoryProvider

if TYPE_CHECKING:
    from wakelog.adapters.agent_framework.session_store import WakelogAgentSessionStore

frameworks.warn_outside("agent-framework-core", oldest="1.20.0", newest="1.23.0")

__all__ = ["WakelogCheckpointStorage", "WakelogHistoryProvider", "WakelogAgentSessionStore"]


def __getattr__(name: str) -> Any:
    """The session store comes when it is asked for: the framework warns that its class is experimental, and only who
    uses it has to hear that."""
    if name != "WakelogAgentSessionStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wakelog.adapters.agent_framework.session_store import WakelogAgentSessionStore

    return WakelogAgentSessionStore
