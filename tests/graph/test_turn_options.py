"""The options of a turn as a form shows them, such as LangGraph Studio's."""

from __future__ import annotations

from topicloom import TurnOptions


def test_a_form_explains_each_option_and_leaves_out_what_programs_alone_set() -> None:
    fields = TurnOptions.model_json_schema()["properties"]
    assert all(field["description"] for field in fields.values())
    assert not {"changes", "repair", "chats", "begun", "reply_form"} & set(fields)
    assert {"model", "window", "timezone", "instructions"} <= set(fields)
