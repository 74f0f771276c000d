"""The registry of roles: nothing that walks it misses one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from tables import each_row

from topicloom import (
    ARBITER,
    MERGER,
    READER,
    RESPONDER,
    REWRITER,
    SPLITTER,
    Assignment,
    ConfigurationError,
    Roles,
    RoleSpec,
    Settings,
    embedded_roles,
)
from topicloom.context.prefix import PrefixMeter
from topicloom.prompts.loader import load_prompt
from topicloom.roles.arbiter import CrossEncoderArbiter
from topicloom.roles.chat import Chat
from topicloom.roles.choice import ChatOptions, RoleModels, choose_roles
from topicloom.roles.registry import ROLES, check_names, spec_of
from topicloom.search.hashing import HashingEmbedder
from topicloom.state.language import Language
from topicloom.testing import FailingRole

ROOT = Path(__file__).parents[2]
SPECS = [spec_of(name) for name in ROLES]
EMBEDDED = embedded_roles(HashingEmbedder(64))
MODEL = FakeListChatModel(responses=["YES"])

each = each_row("spec", SPECS)


class TestEveryRole:
    @each
    def test_is_named_after_its_module(self, spec: RoleSpec[Any]) -> None:
        assert ROLES[spec.name].endswith(f".{spec.name}")

    @each
    def test_is_in_the_settings(self, spec: RoleSpec[Any]) -> None:
        models = {spec.name: "openai:gpt-5-nano"}
        assert Settings(role_models=models).role_models == models

    @each
    def test_is_in_the_docs(self, spec: RoleSpec[Any]) -> None:
        page = (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8")
        assert f"| `{spec.name}` | {spec.purpose} |" in page
        example = (ROOT / ".env.example").read_text("utf-8")
        assert re.search(rf"^#.*\b{spec.name}\b", example, re.MULTILINE)

    @each
    @each_row("language", get_args(Language))
    def test_has_a_prompt_in_every_language(self, spec: RoleSpec[Any], language: Language) -> None:
        assert load_prompt(spec.name, language)

    @each
    def test_every_role_has_a_deadline(self, spec: RoleSpec[Any]) -> None:
        role = spec.chat(Chat.of(MODEL, PrefixMeter(), deadline=7.0))
        assert role.model == "FakeListChatModel"
        if spec is not RESPONDER:  # its client has a time-out, and it may take long to the end
            assert role.deadline == 7.0

    @each
    def test_has_a_stand_in_or_says_what_happens_without(self, spec: RoleSpec[Any]) -> None:
        assert (EMBEDDED.stand_in(spec) is None) == bool(spec.without)
        assert (EMBEDDED.get(spec) is None) == (spec.embedded is None)

    @each
    def test_refuses_what_is_no_answer_of_its(self, spec: RoleSpec[Any]) -> None:
        assert not spec.accepts(None)
        assert not spec.accepts((None,))


def test_answers_of_several_parts_are_looked_into() -> None:
    assert SPLITTER.accepts(())
    assert SPLITTER.accepts((Assignment("m1", None, "Tea"),))
    assert not SPLITTER.accepts((Assignment("m1", None, "Tea"), "m2"))


class TestUnknownRoles:
    def test_unknown_roles_in_settings_are_named(self) -> None:
        with pytest.raises(
            ValueError, match="there is no role 'oracle', 'poet': the roles are responder, "
        ):
            Settings(role_models={"oracle": "x:y", "reader": "x:y", "poet": "x:y"})

    def test_unknown_roles_in_code_are_named(self) -> None:
        with pytest.raises(ConfigurationError, match="no role 'poet'"):
            check_names({"poet": MODEL})


class TestChoice:
    def chosen(self, models: RoleModels, *, domain: bool = False) -> dict[str, str]:
        def open_model(role: str, model: object) -> BaseChatModel:
            assert isinstance(model, str)
            return MODEL.model_copy(update={"name": model})

        options = ChatOptions(PrefixMeter(), 8_000, 8_000, 7.0)
        roles = choose_roles(models, EMBEDDED, open_model, options, domain=domain)
        models_by_role = {spec.name: roles.get(spec) for spec in SPECS}
        return {name: "" if r is None else r.model for name, r in models_by_role.items()}

    def test_the_strong_one_plays_what_the_cheap_one_does_not(self) -> None:
        chosen = self.chosen(RoleModels(strong="a"))
        embedded = {n for n, model in chosen.items() if model == "embedded"}
        assert embedded == {"planner", "selector"}
        others = ("with a cheap model", "if named")
        idle = {spec.name for spec in SPECS if spec.played in others}
        assert {"rewriter", "arbiter"} <= idle
        assert {n for n, model in chosen.items() if not model} == idle

    def test_who_plays_is_a_matter_of_the_role(self) -> None:
        models = RoleModels(strong="a", cheap="b")
        strong = {spec.name for spec in SPECS if models.of(spec.name) == "a"}
        assert strong == {"responder", "splitter"}
        assert {spec.name for spec in SPECS if models.of(spec.name) is None} == {"arbiter"}

    def test_a_role_that_is_named_embedded_has_no_model(self) -> None:
        chosen = self.chosen(RoleModels(strong="a", by_role={"reader": "embedded"}))
        assert chosen["reader"] == "embedded"
        assert chosen["router"] == "FakeListChatModel"

    def test_a_domain_needs_a_planner(self) -> None:
        chosen = self.chosen(RoleModels(cheap="b"), domain=True)
        assert chosen["planner"] == chosen["selector"] == "FakeListChatModel"
        assert chosen["responder"] == "embedded"

    def test_a_name_can_stand_for_something_else(self) -> None:
        options = ChatOptions(PrefixMeter(), 8_000, 8_000, 7.0)
        models = RoleModels(by_role={"arbiter": "rerank:some/model"})
        arbiter = choose_roles(models, EMBEDDED, lambda role, model: MODEL, options)[ARBITER]
        assert isinstance(arbiter, CrossEncoderArbiter)
        assert (arbiter.model, arbiter.deadline) == ("some/model", 7.0)


class TestRoles:
    def test_replacing_one_leaves_the_others_and_the_stand_ins(self) -> None:
        mine: Any = FailingRole()
        roles = EMBEDDED.replace(READER, mine)
        assert roles.in_turn(READER) == (mine, EMBEDDED[READER])
        assert roles[SPLITTER] is EMBEDDED[SPLITTER]
        assert EMBEDDED[READER] is not mine

    def test_a_stand_in_is_replaced_if_it_is_given(self) -> None:
        mine: Any = FailingRole()
        assert EMBEDDED.replace(READER, mine, stand_in=mine).in_turn(READER) == (mine, mine)

    def test_a_role_that_nobody_plays_is_named(self) -> None:
        assert EMBEDDED.get(REWRITER) is None
        assert EMBEDDED.in_turn(REWRITER) == ()
        assert EMBEDDED.in_turn(MERGER) == (EMBEDDED[MERGER],)
        with pytest.raises(
            ConfigurationError, match="no model or stand-in is set for the role 'rewriter'"
        ):
            EMBEDDED[REWRITER]
        assert Roles().in_turn(READER) == ()


@pytest.mark.slow
def test_nothing_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys, topicloom.settings;"
        "sys.exit(any(m in sys.modules for m in topicloom.roles.registry.ROLES.values()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
