"""The skeleton as text: exact, with anchors, closed against what stands in the document."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from domains import the_document
from hypothesis import example, given, strategies as st

from topicloom import ConfigurationError, Domain, TurnPlan
from topicloom.domain.document import find_derived_anchors
from topicloom.domain.skeleton import SkeletonRenderer, split_elements
from topicloom.domain.yaml_text import format_yaml

yaml: Any = pytest.importorskip("yaml")
OURS = SkeletonRenderer(Domain())

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
texts = texts | st.sampled_from(["</status>", "yes", "null", "1e3", "- a: b", "#x", "\u2028", "'"])
documents: st.SearchStrategy[Any] = st.dictionaries(
    texts,
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63)
        # PyYAML reads YAML 1.1, where exponents need a dot before them.
        | st.floats(-1e12, 1e12).filter(lambda number: "e" not in repr(number))
        | texts,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=20,
    ),
    max_size=5,
)


def shuffled(value: Any) -> Any:
    """The same data with its keys in another order."""
    if isinstance(value, dict):
        return {k: shuffled(v) for k, v in reversed(value.items())}
    return [shuffled(v) for v in value] if isinstance(value, list) else value


def body(text: str, name: str) -> str:
    """What stands in an element."""
    return split_elements(text)[name].split("\n", 1)[1].rsplit("\n", 1)[0]


class TestYaml:
    @pytest.mark.slow
    @given(documents)
    def test_what_is_read_is_what_was_written(self, value: dict[str, Any]) -> None:
        assert yaml.safe_load(format_yaml(value, {})) == json.loads(json.dumps(value))

    @pytest.mark.slow
    @given(documents)
    def test_the_order_of_keys_does_not_matter(self, value: dict[str, Any]) -> None:
        assert format_yaml(value, {}) == format_yaml(shuffled(value), {})

    @pytest.mark.slow
    @given(documents)
    def test_no_tag_is_in_it(self, value: dict[str, Any]) -> None:
        text = format_yaml(value, {})
        assert "<" not in text
        assert text.isprintable() or not re.search(r"[\x7f-\x9f\u2028\u2029]", text)

    def test_every_object_is_written_with_its_anchor(self) -> None:
        document = the_document()
        assert format_yaml(document, find_derived_anchors(document)).splitlines() == [
            "events: # events",
            '  - {"id": "q_001", "after": ["q_0"], "objective": "Find the temple", "status": '
            '"in_progress"}',
            '  - {"id": "q_002", "objective": "Help the blacksmith", "status": "in_progress"}',
            '  - {"id": "q_0", "objective": "Find the lost necklace", "status": "done"}',
            "health: 85",
            "inventory:",
            '  _anchor: "inventory"',
            '  belt: {"_anchor": "inventory/belt", "slots": 3}',
            "  main_bag:",
            '    _anchor: "bag_main"',
            "    items: # bag_main.items",
            '      - {"id": "item_sword_01", "count": 1, "name": "Iron Sword"}',
            '      - {"id": "item_potion_02", "count": 2, "name": "Healing Potion"}',
            '      - {"id": "item_lamp_03", "count": 4, "name": "灯笼"}',
            'location: "forest"',
            'notes: ["the door is locked"]',
            "tasks: # tasks",
            '  - {"id": "t1", "priority": 2, "status": "open", "title": "Pack the books"}',
            '  - {"id": "t2", "priority": 1, "status": "completed", "title": "Call the movers"}',
        ]

    def test_things_in_things(self) -> None:
        heroes = [{"id": "h1", "items": [{"id": "i1"}], "stats": {"hp": {"now": 1}}}, [[1], {}], []]
        text = format_yaml({"heroes": heroes}, {})
        assert '- id: "h1"' in text
        assert "items: # h1.items" in text
        assert yaml.safe_load(text) == {"heroes": heroes}


class TestSkeletons:
    def test_the_one_that_ships(self) -> None:
        text = OURS.render(the_document(), TurnPlan(goal="Go on."))[0]
        assert list(split_elements(text)) == ["status", "active_events", "guidance"]
        assert "events" not in yaml.safe_load(body(text, "status"))
        assert [e["id"] for e in yaml.safe_load(body(text, "active_events"))] == ["q_001", "q_002"]
        assert yaml.safe_load(body(text, "guidance")) == {"current_goal": "Go on."}

    @pytest.mark.slow
    @given(documents, texts)
    @example({"": [[]], "id": {"": None, "0": None}}, "")
    def test_it_says_all_of_the_document_and_nothing_else(
        self, document: dict[str, Any], goal: str
    ) -> None:
        document.pop("events", None)
        if not document:
            return
        text, fault = OURS.render(document, TurnPlan(goal=goal))
        assert (text, fault) == OURS.render(shuffled(document), TurnPlan(goal=goal))
        assert fault == ""
        assert set(split_elements(text)) == {"status", "active_events"} | (
            {"guidance"} if goal else set()
        )
        assert text.count("<") == (6 if goal else 4)

    def test_events_may_have_another_name(self) -> None:
        skeletons = SkeletonRenderer(Domain(events="quests"))
        text = skeletons.render({"quests": [{"id": "q", "status": "open"}]}, TurnPlan())[0]
        assert '{"id": "q", "status": "open"}' in body(text, "active_events")
        assert body(text, "status") == "{}"

    def test_nothing_of_nothing(self) -> None:
        assert OURS.render({}, TurnPlan())[0] == ""
        assert "guidance" in OURS.render({}, TurnPlan(goal="Go"))[0]


class TestOwnTemplates:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path

    def rendered(self, folder: Path, template: str, document: Any = None) -> Any:
        (folder / "own.jinja").write_text(template, encoding="utf-8")
        document = the_document() if document is None else document
        plan = TurnPlan(template="own", goal="Go </g> on", focus="q_002")
        return SkeletonRenderer(Domain(templates=folder)).render(document, plan)

    def test_own_templates_see_document_focus_and_plan(self, folder: Path) -> None:
        template = (
            "<hp>\n{{ document.health }}\n</hp>\n"
            "<bag>\n{{ document.inventory | yaml }}\n</bag>\n"
            "<focus>\n{{ focus.objective }}\n{{ plan.template }}\n</focus>\n"
            "{% for e in events %}{{ e.id }} {% endfor %}"
        )
        elements = split_elements(self.rendered(folder, template)[0])
        assert elements["hp"] == "<hp>\n85\n</hp>"
        assert '_anchor: "inventory"' in elements["bag"]
        assert elements["focus"] == "<focus>\nHelp the blacksmith\nown\n</focus>"
        assert elements[""] == "q_001 q_002"

    def test_values_are_escaped(self, folder: Path) -> None:
        template = "<a>\n{{ goal }} {{ document.x }} {{ document | yaml }}\n</a>\n"
        text = self.rendered(folder, template, {"x": "</a><b>"})[0]
        assert text.count("<") == 2

    def test_they_may_go_on_from_ours(self, folder: Path) -> None:
        text = self.rendered(folder, '{% include "topicloom/default.jinja" %}\n<x>\n1\n</x>')[0]
        assert list(split_elements(text)) == ["status", "active_events", "guidance", "x"]

    def test_the_default_may_be_theirs(self, folder: Path) -> None:
        (folder / "default.jinja").write_text("<mine>\n1\n</mine>")
        skeletons = SkeletonRenderer(Domain(templates=folder))
        assert skeletons.templates == {"default": ""}
        assert skeletons.render({"a": 1}, TurnPlan())[0] == "<mine>\n1\n</mine>"

    @pytest.mark.parametrize(
        "template",
        [
            "{{ nothing.there }}",
            "{{ document.no }}",
            "{{ 1 / 0 }}",
            "{{ document.__class__.__mro__ }}",
            "{% include 'nowhere' %}",
            "{% for i in range(10000000) %}x{% endfor %}",
            "{{ document.update({'health': 0}) }}",
            "{{ events[99].id }}",
            "{% include 'own.jinja' %}",
            "{% extends 'own.jinja' %}",
        ],
    )
    def test_one_that_fails_is_replaced_by_ours(self, folder: Path, template: str) -> None:
        text, fault = self.rendered(folder, template)
        assert text == OURS.render(the_document(), TurnPlan(goal="Go </g> on"))[0]
        assert fault.startswith("template 'own' failed, 'default' was used: ")

    def test_one_that_cannot_be_read_is_told_at_once(self, folder: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"domain.templates: own.jinja, line 2: "):
            self.rendered(folder, "<a>\n{% if %}\n</a>")

    def test_one_in_another_encoding_is_told_at_once(self, folder: Path) -> None:
        (folder / "old.jinja").write_bytes("{# 战斗 #}".encode("gbk"))
        with pytest.raises(
            ConfigurationError, match=r"domain.templates: old.jinja is not .* UTF-8"
        ):
            SkeletonRenderer(Domain(templates=folder))

    def test_a_folder_that_is_not_there(self, folder: Path) -> None:
        with pytest.raises(ConfigurationError, match="there is no folder"):
            SkeletonRenderer(Domain(templates=folder / "nowhere"))

    def test_a_template_cannot_read_files_outside(self, folder: Path) -> None:
        (folder.parent / "secret.jinja").write_text("secret")
        text, fault = self.rendered(folder, '{% include "../secret.jinja" %}')
        assert "secret" not in text.replace(fault, "")
        assert fault
