"""What servers and their clients ask a compiled graph for: its schemas, and a context of theirs."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from topicloom import Domain, Settings, TurnOptions, build_session_graph

CONFIG: Any = {"configurable": {"thread_id": "schemas"}}


@pytest.mark.parametrize("domain", [None, Domain()], ids=["plain", "domain"])
def test_input_output_and_context_have_schemas(domain: Domain | None) -> None:
    app = build_session_graph(settings=Settings(), domain=domain).compile()
    fields = {"messages"} if domain is None else {"messages", "document"}
    assert app.get_input_jsonschema()["properties"].keys() == fields
    assert fields < app.get_output_jsonschema()["properties"].keys()
    context = app.get_context_jsonschema()
    assert context is not None
    ours = {"begun", "changes", "chats", "regroup", "reply_form"}  # set by the package itself
    assert context["properties"].keys() == TurnOptions.model_fields.keys() - ours
    assert {"model", "cheap_model", "instructions", "window"} <= context["properties"].keys()


def test_a_context_may_hold_what_others_put_there() -> None:
    app = build_session_graph(storage="store").compile(InMemorySaver(), store=InMemoryStore())
    context: Any = {"thread_id": "schemas", "answer": False}
    state = app.invoke({"messages": [HumanMessage("Just note it.")]}, CONFIG, context=context)
    assert [m.content for m in state["messages"]] == ["Just note it."]


def test_an_option_of_a_wrong_kind_is_named() -> None:
    app = build_session_graph(storage="store").compile(InMemorySaver(), store=InMemoryStore())
    context: Any = {"keep_messages": "many"}
    with pytest.raises(ValueError, match="keep_messages"):
        app.invoke({"messages": [HumanMessage("Hello")]}, CONFIG, context=context)
