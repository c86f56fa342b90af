"""Where a framework is missing, its adapter says what to install."""

import importlib
import importlib.util

import pytest

ADAPTERS = [
    ("openai_agents", "agents", "openai-agents"),
    ("claude_agent", "claude_agent_sdk", "claude-agent"),
    ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
]


@pytest.mark.parametrize(("adapter", "framework", "extra"), ADAPTERS)
def test_an_adapter_without_its_framework_names_the_extra(adapter: str, framework: str, extra: str) -> None:
    if importlib.util.find_spec(framework) is not None:
        pytest.skip(f"{framework} is installed here")
    with pytest.raises(ImportError, match=rf"pip install 'wakelog\[{extra}\]'"):
        importlib.import_module(f"wakelog.adapters.{adapter}")
