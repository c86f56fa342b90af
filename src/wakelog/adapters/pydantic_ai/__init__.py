"""Pydantic AI: wakelog as its conversation store, and a capability that records runs as they go.

    from wakelog.adapters.pydantic_ai import WakelogConversationStore
    conversations = WakelogConversationStore(".wakelog")
    conversation = await conversations.load("user-123") or Conversation(conversation_id="user-123")
    await conversations.save(await agent.run("Hello", conversation=conversation))

conversation_store.py is the store, capability.py the capability, message_shape.py reads the messages of both.
"""

from wakelog.adapters import frameworks

try:
    import pydantic_ai.conversation_store as _framework
except ImportError as exc:
    raise frameworks.missing("Pydantic AI with its ConversationStore", "pydantic-ai") from exc

from wakelog.adapters.pydantic_ai.capability import WakelogCapability
from wakelog.adapters.pydantic_ai.conversation_store import WakelogConversationStore

frameworks.warn_outside("pydantic-ai-slim", oldest="2.66.0", newest="2.66.0")
_ = _framework

__all__ = ["WakelogCapability", "WakelogConversationStore"]
