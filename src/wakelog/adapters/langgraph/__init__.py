"""LangGraph on wakelog: `WakelogSaver` is its checkpointer, `WakelogStore` its long-term store.

graph = builder.compile(checkpointer=WakelogSaver("path"))
"""

from wakelog.adapters import frameworks

try:
    import langgraph.graph  # noqa: F401  # imported first, so that one place reports that it is missing
except ImportError as exc:
    raise frameworks.missing("LangGraph", "langgraph") from exc

from wakelog.adapters.langgraph.memory import WakelogStore
from wakelog.adapters.langgraph.saver import WakelogSaver

frameworks.warn_outside("langgraph", oldest="1.0", newest="1.2.22")

__all__ = ["WakelogSaver", "WakelogStore"]
