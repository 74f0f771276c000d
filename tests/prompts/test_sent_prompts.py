"""The prompts as they are sent: what they say of themselves is so, and nothing contradicts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from domains import ScriptedPlanner, edit_plan, open_domain, say, the_document
from langchain_core.messages import AIMessageChunk, SystemMessage
from openai_behaviours import Reply
from openai_server import OpenAIServer
from sessions import open_graph, past, record, tell, thread

from topicloom.context.notes import render_note
from topicloom.context.token_count import EstimatingCounter
from topicloom.context.windows import PromptWindow
from topicloom.domain.curation import Candidate
from topicloom.domain.plan import SearchIntent, TurnPlan
from topicloom.domain.planner import PlanRequest, build_planner_prompt
from topicloom.domain.selector import SelectRequest, build_selector_prompt
from topicloom.graph.deps import choose_zone
from topicloom.nodes.activate_topic import ActivateTopic
from topicloom.prompts.loader import LANGUAGES, Prompts, load_prompt
from topicloom.prompts.wording import get_wording
from topicloom.roles.arbiter import ARBITER
from topicloom.roles.models import open_model
from topicloom.roles.responder import ChatResponder, ReplyRequest
from topicloom.roles.rewriter import REWRITER, RewriteRequest
from topicloom.state.language import Language
from topicloom.state.recall import Note
from topicloom.state.session import SearchScope
from topicloom.state.stored_message import StoredMessage, get_text
from topicloom.testing import FixedRole, ScriptedResponder, fake_roles
from topicloom.topics.boundary_policy import AdsorberPolicy

CONFIG = thread()
COUNTER = EstimatingCounter("o200k")
WINDOW = PromptWindow.of(12_000, COUNTER, Prompts())
languages = pytest.mark.parametrize("language", LANGUAGES)


def system_of(request: ReplyRequest) -> str:
    return get_text(request.messages[0])


class TestTheMainPrompt:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("said", "language"), [("The oak is old.", "en"), ("橡树很老。", "zh")]
    )
    def test_days_and_memory_are_explained_from_the_first_turn_on(
        self, tmp_path: Path, said: str, language: Language
    ) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        tell(graph, CONFIG, said)
        first = responder.requests[-1]
        assert system_of(first) == load_prompt("days", language)
        assert re.match("-- .* --\n|-- .*）--\n", get_text(first.messages[1])), "a day is shown"
        assert first.tools == []
        record(graph, CONFIG, *past("茶", "雨"))
        tell(graph, CONFIG, said, keep=0)
        later = responder.requests[-1]
        assert system_of(later).startswith(load_prompt("days", "zh"))
        assert load_prompt("responder", "zh") in system_of(later)
        assert later.search == "activate_topic"

    @languages
    def test_the_prompt_and_a_note_call_a_summary_the_same(self, language: Language) -> None:
        in_short = get_wording(language).in_short
        begins = {"en": "In short", "zh": "概要"}[language]
        assert in_short.startswith(begins)
        assert f"`{begins}`" in load_prompt("responder", language)

    @languages
    def test_what_was_not_searched_may_be_searched(self, language: Language) -> None:
        """The block, the prompt and the tool say the same of archived topics."""
        note = Note(after=1, searched="boiler", scope=SearchScope(briefs=1, unsearched=2))
        block = render_note(note, lambda _: pytest.fail("it quotes nothing"), language)
        assert "include_archived" in block
        assert "again" not in block, "it may be the first call"
        prompt = load_prompt("responder", language)
        (bullet,) = (
            line for line in prompt.splitlines() if line.startswith("- `include_archived`")
        )
        described = ActivateTopic.model_fields["include_archived"].description or ""
        assert "only" not in f"{bullet} {described}".lower()
        assert "只有" not in bullet
        assert {"en": "not searched", "zh": "未查找"}[language] in bullet
        assert "not searched" in described

    @pytest.mark.parametrize(
        ("line", "arguments"),
        [
            ("SEARCH: boiler", {"query": "boiler", "when": None}),
            ("SEARCH: boiler | in May", {"query": "boiler", "when": "in May"}),
            (
                "SEARCH: boiler | in May | archived",
                {"query": "boiler", "when": "in May", "include_archived": True},
            ),
            (
                "SEARCH: boiler | archived",
                {"query": "boiler", "when": None, "include_archived": True},
            ),
            ("搜索：锅炉 | 已归档", {"query": "锅炉", "when": None, "include_archived": True}),
        ],
    )
    def test_a_model_without_tools_can_search_the_archive(
        self, openai_server: OpenAIServer, line: str, arguments: dict[str, Any]
    ) -> None:
        model = open_model("openai:gpt-4o", base_url=openai_server.base_url, timeout=5)
        responder = ChatResponder(model)
        responder.server.refused["tools"] = "takes no tools"
        openai_server.then(Reply(line))
        request = ReplyRequest("s", [], [], "?", [], "en", search="activate_topic")
        request = replace(request, messages=[SystemMessage("Hi")])
        whole = AIMessageChunk(content="")
        for chunk in responder.stream(request):
            whole += chunk
        (call,) = whole.tool_calls
        assert call["args"] == arguments

    @pytest.mark.slow
    @languages
    def test_the_numbers_before_summaries_are_explained(
        self, tmp_path: Path, language: Language
    ) -> None:
        said = {"en": "I said that {} is {}.", "zh": "我说过{}是{}。"}[language]
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder), window=30_000, beginning="segments")
        for n in range(16):
            tell(graph, CONFIG, said.format(n, n + 1))
        system = system_of(responder.requests[-1])
        heading = get_wording(language).summaries
        assert re.search(rf"{re.escape(heading)}\n\[m\d+–m\d+\] ", system)
        assert {"en": "the first and the last message", "zh": "第一条和最后一条消息"}[
            language
        ] in heading


class TestADomain:
    @languages
    def test_a_plan_is_told_from_the_message(self, language: Language) -> None:
        """A goal, and names to look up, behind the message read as the user's words."""
        plan = TurnPlan(goal="Lead them on.", search=SearchIntent(keywords=("key", "elder")))
        candidate = Candidate(id="lore_1", kind="lore", text="A key.", score=0.5)
        request = SelectRequest("s", "Where is it?", [], plan, [candidate], 3, language)
        words, prompt = get_wording(language), load_prompt("selector", language)
        lines = get_text(build_selector_prompt(request, WINDOW)[-1]).splitlines()
        assert lines[:6] == [
            words.message,
            "Where is it?",
            words.goal,
            "Lead them on.",
            words.keywords,
            "key; elder",
        ]
        for line in (words.message, words.goal, words.keywords, words.candidates):
            assert f"`{line}`" in prompt
        bare = get_text(build_selector_prompt(replace(request, plan=TurnPlan()), WINDOW)[-1])
        assert words.goal not in bare
        assert words.keywords not in bare

    @languages
    def test_active_events_stand_there_once(self, language: Language) -> None:
        document = the_document()
        request = PlanRequest(
            session="s",
            query="Where now?",
            tail=[],
            document=document,
            events=document["events"][:2],
            templates={"default": ""},
            previous=None,
            language=language,
        )
        known = get_text(build_planner_prompt(request, WINDOW)[1])
        _, events = known.split(f"{get_wording(language).events}\n")
        assert events.splitlines() == ["- q_001: Find the temple", "- q_002: Help the blacksmith"]
        assert known.count("in_progress") == 2
        small = PromptWindow.of(2_000, COUNTER, Prompts())
        large = {**document, "notes": ["the door is locked " * 20] * 100}
        known = get_text(build_planner_prompt(replace(request, document=large), small)[1])
        _, events = known.split(f"{get_wording(language).events}\n")
        assert events.count("in_progress") == 2, "the data stands there in part"

    @pytest.mark.slow
    def test_no_message_is_rewritten_that_only_changes_the_data(self, tmp_path: Path) -> None:
        asked = list[RewriteRequest]()

        def rewrite(request: RewriteRequest) -> str:
            asked.append(request)
            return f"{request.text} (the sword)"

        planner = ScriptedPlanner(otherwise=TurnPlan())
        roles = fake_roles().replace(REWRITER, FixedRole(rewrite))
        graph = open_domain(tmp_path, roles, planner=planner)
        record(graph, CONFIG, *past("茶", "雨"))
        tell(graph, CONFIG, "split this", keep=0)
        asked.clear()
        planner.script = [edit_plan(("SET", "item_sword_01.count", 3)), TurnPlan()]
        say(graph, "Set its count to 3", the_document(), config=CONFIG)
        assert asked == []
        say(graph, "Where is it?", config=CONFIG)
        assert [request.text for request in asked] == ["Where is it?"]
        assert planner.requests[-1].query == "Where is it?"


class TestOtherRoles:
    @pytest.mark.slow
    def test_a_rewriter_is_shown_three_rounds(self, tmp_path: Path) -> None:
        asked = list[RewriteRequest]()

        def rewrite(request: RewriteRequest) -> str:
            asked.append(request)
            return request.text

        graph = open_graph(tmp_path, fake_roles().replace(REWRITER, FixedRole(rewrite)))
        record(graph, CONFIG, *past("茶", "雨", rounds=8))
        tell(graph, CONFIG, "split this", keep=0)
        tell(graph, CONFIG, "And that one?")
        shown: list[StoredMessage] = list(asked[-1].tail)
        assert len(shown) == 6
        assert shown[-1].text == "All right, noted."

    @languages
    def test_briefs_have_one_length(self, language: Language) -> None:
        """Whoever writes one: a review does not cut what a split may write."""
        limit = {"en": r"At most ([\d,]+) characters", "zh": r"(?:最多|不超过) ?([\d,]+) ?字"}[
            language
        ]
        (brief,) = re.findall(limit, load_prompt("brief", language))
        assert brief.replace(",", "") == "1000"
        assert brief in re.findall(limit, load_prompt("reviewer", language))

    def test_an_arbiter_has_a_grey_zone_to_decide_in(self) -> None:
        alone = fake_roles()
        asked = alone.replace(ARBITER, FixedRole(0.9))
        assert choose_zone(AdsorberPolicy(), asked).low == 0.05
        assert choose_zone(AdsorberPolicy(), alone).low == 0.3
        assert choose_zone(AdsorberPolicy(low=0.2), asked).low == 0.2
        assert choose_zone(AdsorberPolicy(preset="spec"), asked).low == 0.4
