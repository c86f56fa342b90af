"""The index: tables made from the log, and queries over them. It is a cache; the log is the truth."""

from wakelog.index.index import Index
from wakelog.index.results import (
    AsOf,
    CostRow,
    Costs,
    DecisionInfo,
    ErrorInfo,
    EventInfo,
    Hit,
    ModifiedFile,
    Page,
    SessionInfo,
    Table,
    ToolInfo,
    TurnInfo,
)

__all__ = [
    "AsOf",
    "CostRow",
    "Costs",
    "DecisionInfo",
    "ErrorInfo",
    "EventInfo",
    "Hit",
    "Index",
    "ModifiedFile",
    "Page",
    "SessionInfo",
    "Table",
    "ToolInfo",
    "TurnInfo",
]
