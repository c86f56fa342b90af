"""Claude Agent SDK: wakelog as its session store, and hooks that record a call before it runs.

    from wakelog.adapters.claude_agent import WakelogSessionStore
    options = ClaudeAgentOptions(session_store=WakelogSessionStore(".wakelog"))

session_store.py is the store, transcript.py one transcript in it, hooks.py the hooks.
"""

from wakelog.adapters import frameworks

try:
    import claude_agent_sdk as _sdk
except ImportError as exc:
    raise frameworks.missing("The Claude Agent SDK", "claude-agent") from exc

from wakelog.adapters.claude_agent.hooks import hooks
from wakelog.adapters.claude_agent.session_store import WakelogSessionStore

frameworks.warn_outside("claude-agent-sdk", oldest="0.2.182", newest="0.2.184")
_ = _sdk

__all__ = ["WakelogSessionStore", "hooks"]
