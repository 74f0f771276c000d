"""Receipts of turns with a domain."""

from __future__ import annotations

from pathlib import Path

from domains import CONFIG, ScriptedPlanner, edit_plan, open_domain, say, the_document
from sessions import last_receipt, past, record

from topicloom import TurnPlan
from topicloom.testing import ScriptedResponder, fake_roles, make_tool_call


def test_plan_edits_and_errors(tmp_path: Path) -> None:
    planner = ScriptedPlanner([TurnPlan(goal="Go"), edit_plan(("SET", "no.thing", 1))])
    responder = ScriptedResponder(
        "Hello.", make_tool_call("edit_state", {"edits": [["SET", "health", 3]]}, text="Done.")
    )
    graph = open_domain(tmp_path, fake_roles(responder), planner=planner)
    say(graph, "Hello", the_document())
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert receipt.plan is not None
    assert TurnPlan.model_validate(receipt.plan.model_dump()) == TurnPlan(goal="Go")
    assert (receipt.edits, receipt.edit_errors) == ((), ())
    say(graph, "Health 3")
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert receipt.plan is not None
    assert receipt.plan.kind == "state_edit"
    assert receipt.edits == (("SET", "health", 3),)
    assert receipt.edit_errors[0].startswith("edit 1: there is nothing with the anchor 'no'")
    record(graph, CONFIG, *past("茶"))
    assert last_receipt(tmp_path, graph, CONFIG).plan is None
