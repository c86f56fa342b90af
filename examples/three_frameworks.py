"""The same task done by three frameworks, in one store, and held against each other.

    pip install 'wakelog[langgraph,openai-agents,pydantic-ai]'
    python examples/three_frameworks.py [STORE]

A shop's agent gets a rule, and then the task to refund an order. The model is a few lines that decide by what they are
shown, the same for all three, so the example needs no key. One program shows it less: its session hands over the last
item only, as a limit on the history does. What comes of that is seen in `wakelog compare`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from typing import Any

import wakelog

RULE = "From now on: refunds above 20 euros need my approval."
TASK = "Order 17 came late. Refund it."
MODEL = "rules-1"


def decide(shown: str) -> tuple[str, str, dict[str, Any]]:
    """The model: words, and a call with its arguments or none."""
    if TASK not in shown:
        return "Understood.", "", {}
    if "35 euros" not in shown:
        return "I look the order up first.", "find_order", {"order": 17}
    if "refunded" in shown or "asked" in shown:
        return "That is done.", "", {}
    if "need my approval" in shown:
        return "It cost 35 euros, and above 20 I need an approval.", "ask_approval", {"order": 17, "euros": 35}
    return "It cost 35 euros and came late, so I refund it.", "refund", {"order": 17, "euros": 35}


def find_order(order: int) -> str:
    """Tells what an order cost."""
    return f"order {order}: 35 euros, 9 days late"


def ask_approval(order: int, euros: int) -> str:
    """Asks a person."""
    return f"asked: order {order}, {euros} euros"


def refund(order: int, euros: int) -> str:
    """Pays back."""
    return f"refunded {euros} euros for order {order}"


TOOLS = (find_order, ask_approval, refund)


def with_langgraph(store: wakelog.Store) -> None:
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    from wakelog.adapters.langgraph import WakelogSaver

    def model(state: Any) -> Any:
        words, name, arguments = decide("\n".join(str(message.content) for message in state["messages"]))
        calls = [{"name": name, "args": arguments, "id": f"call-{len(state['messages'])}"}] if name else []
        return {"messages": [AIMessage(words, tool_calls=calls, response_metadata={"model_name": MODEL})]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", ToolNode([tool(each) for each in TOOLS]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    graph = builder.compile(checkpointer=WakelogSaver(store))
    for text in (RULE, TASK):
        graph.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "by-langgraph"}})


def with_pydantic_ai(store: wakelog.Store) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from wakelog.adapters.pydantic_ai import WakelogConversationStore

    def model(messages: Any, info: Any) -> ModelResponse:
        parts = (str(getattr(part, "content", "")) for message in messages for part in message.parts)
        words, name, arguments = decide("\n".join(parts))
        return ModelResponse([TextPart(words), *([ToolCallPart(name, arguments)] if name else [])])

    async def run() -> None:
        conversations = WakelogConversationStore(store)
        agent = Agent(FunctionModel(model, model_name=MODEL), tools=TOOLS)
        for text in (RULE, TASK):
            conversation = await conversations.load("by-pydantic-ai") or Conversation(conversation_id="by-pydantic-ai")
            await conversations.save(await agent.run(text, conversation=conversation))

    asyncio.run(run())


def with_openai_agents(store: wakelog.Store) -> None:
    from agents import Agent, ModelResponse, Runner, Usage, function_tool, set_tracing_disabled
    from agents.memory import SessionSettings
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from wakelog.adapters.openai_agents import WakelogSession

    class Rules(Model):  # type: ignore[misc]  # the SDK is not installed where types are checked
        async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> ModelResponse:
            words, name, arguments = decide(json.dumps(input))
            text = ResponseOutputText(annotations=[], text=words, type="output_text", logprobs=[])
            id = f"msg-{len(input)}"
            message = ResponseOutputMessage(id=id, content=[text], role="assistant", status="completed", type="message")
            output: list[Any] = [message]
            if name:
                call = {"call_id": f"call-{len(input)}", "name": name, "arguments": json.dumps(arguments)}
                output.append(ResponseFunctionToolCall(**call, type="function_call"))
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    set_tracing_disabled(True)
    agent = Agent(name="clerk", model=Rules(), tools=[function_tool(each) for each in TOOLS])
    session = WakelogSession("by-openai-agents", store, session_settings=SessionSettings(limit=1))
    for text in (RULE, TASK):
        asyncio.run(Runner.run(agent, text, session=session))


def main(place: str) -> None:
    with wakelog.open(place) as store:
        with_langgraph(store)
        with_pydantic_ai(store)
        with_openai_agents(store)
    for arguments in ("ls", "compare by-langgraph by-pydantic-ai by-openai-agents"):
        print(f"$ wakelog {arguments}", flush=True)
        command = [sys.executable, "-m", "wakelog", *arguments.split(), "--store", place]
        subprocess.run(command, check=True)
        print(flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(folder)
