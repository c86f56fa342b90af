"""Pydantic AI: wakelog as its conversation store, and a capability that records runs as they go.

    from wakelog.adapters.pydantic_ai import WakelogConversationStore
    conversations = WakelogConversationStore(".wakelog")
    conversation = await conversations.load("user-123") or Conversation(conversation_id="user-123")
    await conversations.save(await agent.run("Hello", conversation=conversation))

conversation_store.py is the store, capability.py the capability, message_shape.py reads the messages of both. Pydantic
AI has conversation stores since 2.66; the capability works with older releases too.
"""

from typing import TYPE_CHECKING, Any

from wakelog.adapters import frameworks

try:
    import pydantic_ai.capabilities as _framework
except ImportError as exc:
    raise frameworks.missing("Pydantic AI with capabilities", "pydantic-ai") from exc

from wakelog.adapters.pydantic_ai.capability import WakelogCapability

if TYPE_CHECKING:
    from wakelog.adapters.pydantic_ai.conversation_store import WakelogConversationStore

frameworks.warn_outside("pydantic-ai-slim", oldest="2.0.0", newest="2.68.0")
_ = _framework

__all__ = ["WakelogCapability", "WakelogConversationStore"]


def __getattr__(name: str) -> Any:
    """The store is imported when it is used, since only newer releases have what it is made of."""
    if name != "WakelogConversationStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from wakelog.adapters.pydantic_ai.conversation_store import WakelogConversationStore
    except ModuleNotFoundError as exc:
        raise ImportError(
            "WakelogConversationStore needs Pydantic AI 2.66: pip install 'pydantic-ai-slim>=2.66'"
        ) from exc
    return WakelogConversationStore
