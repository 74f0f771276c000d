"""The document: what may be one, and how its objects are named."""

from __future__ import annotations

import math
from typing import Any

import pytest
from domains import the_document
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import InputError
from topicloom.domain.document import (
    digest_json,
    find_derived_anchors,
    get_label,
    has_anchors,
    index_nodes,
    is_active,
    list_events,
    parse_document,
)

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), max_size=12)
texts = texts.filter(lambda text: text not in ("id", "_anchor"))
values: st.SearchStrategy[Any] = st.recursive(
    scalars.filter(lambda v: not isinstance(v, float) or math.isfinite(v)) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


class TestTaken:
    @each_row(
        ("value", "told"),
        [
            ([], "has to be a JSON object, not list"),
            (None, "has to be a JSON object, not NoneType"),
            ("{}", "has to be a JSON object, not str"),
            ({"a": {"b": [1, math.nan]}}, r"document\.a\.b\[1\]: nan is no JSON number"),
            ({"a": math.inf}, r"document\.a: inf"),
            ({"a": {1: 2}}, r"document\.a: the key '1' is no text"),
            ({"a": b"x"}, r"document\.a: bytes is no JSON"),
            ({"a": {"b"}}, r"document\.a: set is no JSON"),
            ({"a": 2**64}, r"document\.a: an integer of more than 64 bits"),
            ({"a": "x\0"}, r"document\.a: a text may not hold the character NUL"),
            ({"a": "\ud83d"}, r"document\.a: half a character"),
            ({"\ud83d": 1}, r"document: half a character"),
        ],
    )
    def test_what_is_no_document(self, value: Any, told: str) -> None:
        with pytest.raises(InputError, match=told):
            parse_document(value)

    def test_a_document_that_contains_itself_is_refused(self) -> None:
        ring: dict[str, Any] = {}
        ring["again"] = ring
        with pytest.raises(InputError, match="nested more than 64 levels"):
            parse_document(ring)

    def test_it_is_a_copy(self) -> None:
        given_, document = the_document(), parse_document(source := the_document())
        document["tasks"][0]["title"] = "Other"
        assert source == given_

    @pytest.mark.slow
    @given(st.dictionaries(texts, values, max_size=5))
    def test_what_json_can_hold_stays_as_it_is(self, value: dict[str, Any]) -> None:
        document = parse_document(value)
        assert document == value

    def test_tuples_become_lists(self) -> None:
        assert parse_document({"a": (1, (2,))}) == {"a": [1, [2]]}


class TestAnchors:
    def test_every_object_that_can_be_named(self) -> None:
        places = index_nodes(the_document())
        assert set(places) == {
            "",
            "inventory",
            "bag_main",
            "inventory/belt",
            "item_sword_01",
            "item_potion_02",
            "item_lamp_03",
            "t1",
            "t2",
            "q_001",
            "q_002",
            "q_0",
        }
        assert places["bag_main"].has_own_anchor
        assert not places["inventory/belt"].has_own_anchor
        assert places["t1"].value["title"] == "Pack the books"

    def test_below_a_thing_names_go_on_from_it(self) -> None:
        document = {"heroes": [{"id": "h1", "stats": {"hp": 1, "more": {}}, "items": [{"x": {}}]}]}
        assert set(index_nodes(document)) == {"", "h1", "h1/stats", "h1/stats/more"}

    def test_an_anchor_goes_before_an_id(self) -> None:
        document = {"a": [{"id": 1}, {"id": 2}], "b": [{"id": 1, "_anchor": "b1"}]}
        assert set(index_nodes(document)) == {"", "1", "2", "b1"}

    @each_row(
        "document",
        [
            {"a": [{"id": "x"}, {"id": "x"}]},
            {"a": [{"id": 1}], "b": {"c": [{"id": "1"}]}},
            {"a": {"_anchor": "x"}, "b": {"id": "x"}},
            {"x": {}, "b": [{"id": "x"}]},
            {"x": 3, "b": [{"id": "x"}]},
        ],
    )
    def test_two_of_one_name(self, document: dict[str, Any]) -> None:
        with pytest.raises(
            InputError,
            match=r"names two things, document\.\S+ and document\.\S+: give .* an `_anchor`",
        ):
            parse_document(document)

    def test_a_thing_under_its_own_name(self) -> None:
        assert set(index_nodes({"hero": {"id": "hero"}})) == {"", "hero"}

    @each_row("own", [None, "", True, 1.5, [], {}, "a\nb"])
    def test_what_is_no_anchor(self, own: Any) -> None:
        assert set(index_nodes({"list": [{"id": own}]})) == {""}

    def test_made_ones_are_those_that_nothing_has_by_itself(self) -> None:
        document = the_document()
        named = {document["inventory"]["belt"]["slots"]: "inventory/belt"}
        assert sorted(find_derived_anchors(document).values()) == ["inventory", *named.values()]

    def test_objects_that_hold_anchors_are_told_from_plain_ones(self) -> None:
        document = the_document()
        assert has_anchors(document["inventory"])
        assert not has_anchors(document["inventory"]["belt"])
        assert not has_anchors(document["notes"])


def test_a_thing_is_called_by_its_best_label() -> None:
    assert get_label({"id": "x", "title": "A", "name": "B"}) == "B"
    assert get_label({"id": "x", "名称": "剑"}) == "剑"
    assert get_label({"id": 7, "name": " "}) == "7"
    assert get_label({}) == ""


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest_json({"a": 1, "b": [1, 2]}) == digest_json({"b": [1, 2], "a": 1})
    assert digest_json({"a": [1, 2]}) != digest_json({"a": [2, 1]})


def test_events_are_listed_and_those_that_are_over_are_not_active() -> None:
    document = the_document() | {"odd": [1, {"id": "a"}], "text": "x"}
    assert [e["id"] for e in list_events(document, "events") if is_active(e)] == ["q_001", "q_002"]
    assert list_events(document, "odd") == [{"id": "a"}]
    assert list_events(document, "text") == list_events(document, "nothing") == []
    over = ["done", "Completed", "已完成", "cancelled"]
    assert not any(is_active({"id": "a", "status": status}) for status in over)
    assert all(is_active({"id": "a", "status": s}) for s in ["open", "未完成", None, 3, ["done"]])
    assert not is_active({"id": "a", "done": True})
