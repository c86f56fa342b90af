"""OpenAI Agents SDK: wakelog as its session, and a trace processor that records what items do not have.

    from wakelog.adapters.openai_agents import WakelogSession
    session = WakelogSession("user-123", ".wakelog")
    result = await Runner.run(agent, "Hello", session=session)

session.py is the session, trace.py the processor. Both see the same run, and share what they know in run_notes.py.
"""

from wakelog.adapters import frameworks

try:
    import agents as _agents
except ImportError as exc:
    raise frameworks.missing("The OpenAI Agents SDK", "openai-agents") from exc

from wakelog.adapters.openai_agents.session import WakelogSession
from wakelog.adapters.openai_agents.trace import WakelogTraceProcessor

frameworks.warn_outside("openai-agents", oldest="0.20.0", newest="0.24.0")
_ = _agents

__all__ = ["WakelogSession", "WakelogTraceProcessor"]
