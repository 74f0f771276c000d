"""A domain in the graph: the skeleton in the prompt, and nothing where there is no domain."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from domains import CONFIG, ScriptedPlanner, open_domain, reply_of, say, the_document
from sessions import (
    chatter,
    check_kept,
    kept,
    last_receipt,
    open_graph,
    past,
    record,
    spoken,
    tell,
    transcript_of,
)

from topicloom import ConfigurationError, Domain, TurnPlan, get_session
from topicloom.domain.document import Document
from topicloom.hosting import get_text
from topicloom.testing import FailingRole, FixedRole, ScriptedResponder, SteadyReader, fake_roles

OPENING, CLOSING = '<context_layer type="deterministic"', "</context_layer>"


def said_by_user(responder: ScriptedResponder) -> str:
    """The newest user message of the last prompt, with what stands behind it."""
    return get_text(responder.requests[-1].messages[-1])


def conversation(responder: ScriptedResponder) -> str:
    """The last prompt without its system message."""
    return "\n".join(get_text(m) for m in responder.requests[-1].messages[1:])


class TestWithout:
    def test_the_graph_has_nothing_of_it(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        assert not {"plan", "skeleton", "edit", "curate"} & graph.nodes.keys()
        assert not {"document", "plan", "layers"} & graph.channels.keys()

    def test_a_tool_may_have_the_name_of_ours(self, tmp_path: Path) -> None:
        def edit_state(edits: str) -> str:
            """An application's own."""
            return edits

        open_graph(tmp_path, tools=[edit_state])
        with pytest.raises(ConfigurationError, match="edit_state"):
            open_domain(tmp_path, tools=[edit_state])


class TestSkeleton:
    def test_it_stands_behind_the_message(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder), instructions="Be kind.")
        state = say(graph, "Hello", the_document())
        request = responder.requests[0]
        system, user = request.messages
        assert str(system.content).startswith("Be kind.\n\n# The application's data")
        assert get_text(user).startswith(
            f"-- 2026-03-02 (Monday) --\nHello\n\n{OPENING}>\n<status>\n"
        )
        assert get_text(user).endswith(f"</active_events>\n{CLOSING}")
        assert '{"id": "item_sword_01", "count": 1, "name": "Iron Sword"}' in get_text(user)
        assert "q_001" in get_text(user)
        assert "lost necklace" not in get_text(user), "what is over is not shown"
        assert [t.name for t in request.tools] == ["edit_state"]
        assert state["document"] == the_document()
        assert [r.text for r in transcript_of(tmp_path, graph, CONFIG)] == [
            "Hello",
            "All right, noted.",
        ]

    def test_the_skeleton_is_counted_in_the_receipt(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        say(graph, "Hello", the_document())
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert receipt.sections["skeleton"] > 100
        assert receipt.sections["notes"] == 0
        assert get_session(graph, CONFIG).ledger_tokens == receipt.sections["skeleton"]
        assert [c.role for c in receipt.calls] == ["planner", "responder"]

    def test_it_is_said_once_while_nothing_changes(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder), planner=ScriptedPlanner())
        say(graph, "Hello", the_document())
        say(graph, "And now?")
        say(graph, "And now?", the_document())
        assert said_by_user(responder) == "And now?"
        assert conversation(responder).count(OPENING) == 1

    def test_what_changed_is_said_again(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder), planner=ScriptedPlanner())
        say(graph, "Hello", the_document())
        say(graph, "Now?", the_document() | {"health": 3})
        said = said_by_user(responder)
        assert said.startswith(f'Now?\n\n{OPENING} since="m1">\n<status>\nhealth: 3\n')
        assert "active_events" not in said
        say(graph, "Now?", the_document() | {"health": 3, "events": []})
        assert f'{OPENING} since="m3">\n<active_events>\n[]\n</active_events>' in said_by_user(
            responder
        )

    def test_the_goal_comes_and_goes(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        planner = ScriptedPlanner([TurnPlan(goal="Lead on."), TurnPlan(), TurnPlan()])
        graph = open_domain(tmp_path, fake_roles(responder), planner=planner)
        say(graph, "Hello", the_document())
        assert '<guidance>\ncurrent_goal: "Lead on."\n</guidance>' in said_by_user(responder)
        say(graph, "Go on")
        assert said_by_user(responder).endswith(
            f'{OPENING} since="m1">\n<guidance>\n</guidance>\n{CLOSING}'
        )
        say(graph, "Go on")
        assert said_by_user(responder) == "Go on"

    @pytest.mark.slow
    def test_prompts_grow_at_their_end(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder), window=32_000)
        document: Document = the_document()
        for health in range(8):
            say(graph, f"Turn {health}", document | {"health": health // 2})
        prompts = [[(m.type, get_text(m)) for m in r.messages] for r in responder.requests]
        for earlier, later in pairwise(prompts):
            assert later[: len(earlier)] == earlier

    @pytest.mark.slow
    def test_after_a_split_it_is_whole_again(self, tmp_path: Path) -> None:
        responder, reader = ScriptedResponder(), SteadyReader()
        graph = open_domain(tmp_path, fake_roles(responder, reader=reader))
        record(graph, CONFIG, *past("茶", "雨"))
        say(graph, "Hello", the_document())
        tell(graph, CONFIG, chatter("山", 1), keep=0)
        said = said_by_user(responder)
        assert f"{OPENING}>" in said
        assert said.index(CLOSING) < said.index("<memory>")
        assert conversation(responder).count(OPENING) == 1
        assert len(reader.requests) == 3
        check_kept(kept(tmp_path, get_session(graph, CONFIG)), get_session(graph, CONFIG))

    def test_in_the_order_of_the_spec_it_stands_in_the_system_message(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder), layout="spec")
        say(graph, "Hello", the_document())
        say(graph, "Now?", the_document() | {"health": 3})
        system, *rest = responder.requests[-1].messages
        assert f"{OPENING}>\n<status>\nhealth: 3" in str(system.content)
        today = "-- 2026-03-02 (Monday) --\n"
        assert [get_text(m) for m in rest] == [f"{today}Hello", "All right, noted.", "Now?"]

    @pytest.mark.slow
    def test_a_large_one_makes_room(self, tmp_path: Path) -> None:
        """The estimate knows of it before it is in the prompt, and the split leaves room."""
        items = [{"id": f"i{n}", "name": f"Thing {n}"} for n in range(100)]
        graph = open_domain(tmp_path, window=6_000)
        record(graph, CONFIG, *past("茶", "雨", rounds=12, characters=80))
        state = say(graph, "Hello")
        assert not state["turn"].get("split")
        state = say(graph, "Hello again", {"items": items})
        assert state["turn"]["split"]
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert sum(receipt.sections.values()) < 0.75 * 6_000

    def test_an_empty_document_says_nothing(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        state = say(open_domain(tmp_path, fake_roles(responder)), "Hello")
        assert said_by_user(responder).endswith("--\nHello")
        assert state["document"] == {}

    async def test_on_the_event_loop(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder))
        said = {"messages": [("user", "Hello")], "document": the_document()}
        state = await graph.ainvoke(said, CONFIG)
        assert OPENING in said_by_user(responder)
        assert state["document"] == the_document()

    def test_nothing_of_it_is_seen(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        say(graph, "Hello", the_document())
        assert spoken(graph, CONFIG, "And now?") == "All right, noted."

    def test_a_chinese_document_is_introduced_in_chinese(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder))
        say(graph, "你好，我们走到哪里了", {"地点": "低语森林", "events": []})
        assert str(responder.requests[0].messages[0].content).startswith("# 应用的数据")
        assert '地点: "低语森林"' in said_by_user(responder)


class TestTemplates:
    def test_one_of_the_application(self, tmp_path: Path) -> None:
        templates = tmp_path / "templates"
        templates.mkdir()
        (templates / "combat.jinja").write_text(
            "{#- for\nfights -#}\n<fight>\n{{ document.health }}\n</fight>\n"
        )
        responder = ScriptedResponder()
        planner = ScriptedPlanner(otherwise=TurnPlan(template="combat"))
        domain = Domain(templates=templates)
        graph = open_domain(tmp_path, fake_roles(responder), planner=planner, domain=domain)
        say(graph, "Hello", the_document())
        assert said_by_user(responder).endswith(f"{OPENING}>\n<fight>\n85\n</fight>\n{CLOSING}")
        assert planner.requests[0].templates == {"combat": "for fights", "default": "for any turn"}

    def test_one_that_fails_is_replaced(self, tmp_path: Path) -> None:
        templates = tmp_path / "templates"
        templates.mkdir()
        (templates / "broken.jinja").write_text("{{ document.no.such.thing }}")
        responder = ScriptedResponder()
        planner = ScriptedPlanner(otherwise=TurnPlan(template="broken"))
        domain = Domain(templates=templates)
        graph = open_domain(tmp_path, fake_roles(responder), planner=planner, domain=domain)
        say(graph, "Hello", the_document())
        assert "<status>" in said_by_user(responder)
        (failed,) = last_receipt(tmp_path, graph, CONFIG).failures
        assert failed.role == "skeleton"
        assert "broken" in (failed.failure or "")


class TestPlanner:
    def test_what_it_is_given(self, tmp_path: Path) -> None:
        planner = ScriptedPlanner(otherwise=TurnPlan(focus="q_002"))
        graph = open_domain(tmp_path, planner=planner)
        say(graph, "Hello", the_document())
        state = say(graph, "And now?")
        first, second = planner.requests
        assert (first.query, first.tail, first.previous) == ("Hello", [], None)
        assert [r.text for r in second.tail] == ["Hello", "All right, noted."]
        assert second.previous == TurnPlan(focus="q_002")
        assert second.document == the_document()
        assert [e["id"] for e in second.events] == ["q_001", "q_002"]
        assert state["plan"] == {"focus": "q_002"}

    @pytest.mark.parametrize(
        "planner",
        [FailingRole(), FixedRole("no plan"), FixedRole(None), ScriptedPlanner([ValueError()])],
    )
    def test_one_that_fails_costs_its_plan_only(self, tmp_path: Path, planner: Any) -> None:
        graph = open_domain(tmp_path, planner=planner)
        state = say(graph, "What about the blacksmith?", the_document())
        assert reply_of(state) == "All right, noted."
        assert state["plan"]["focus"] == "q_002", "the embedded planner stands in"
        assert [c.role for c in last_receipt(tmp_path, graph, CONFIG).failures] == ["planner"]

    def test_what_is_not_there_is_dropped(self, tmp_path: Path) -> None:
        wild = TurnPlan(
            focus="q_999", template="nope", goal="Go", edits=(("SET", "a", 1),), reply="x"
        )
        state = say(open_domain(tmp_path, planner=FixedRole(wild)), "Hello", the_document())
        assert state["plan"] == {"goal": "Go"}

    @pytest.mark.slow
    def test_turns_that_only_record_are_not_planned(self, tmp_path: Path) -> None:
        planner = ScriptedPlanner()
        graph = open_domain(tmp_path, planner=planner)
        record(graph, CONFIG, *past("茶"))
        assert planner.requests == []
