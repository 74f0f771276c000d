"""Edits of the document: what each does, what is refused and how, all of them or none.

`TOPICLOOM_EDITS=10000` runs the long form of the random and hostile edit lists.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Iterator
from typing import Any

import pytest
from domains import the_document
from hypothesis import HealthCheck, given, settings, strategies as st
from tables import each_row

from topicloom.domain.document import Document, digest_json, index_nodes, parse_document
from topicloom.domain.edits import apply_edits
from topicloom.domain.validate_document import make_checker

EXAMPLES = int(os.environ.get("TOPICLOOM_EDITS", "300"))
SCHEMA = {
    "type": "object",
    "properties": {
        "health": {"type": "integer", "minimum": 0, "maximum": 100},
        "tasks": {"type": "array", "items": {"required": ["id", "title"]}},
    },
    "required": ["health"],
}


def made(*edits: Any) -> Document:
    """The document after edits that can be made."""
    result = apply_edits(the_document(), edits)
    assert result.errors == ()
    assert len(result.changes) == len(edits)
    return result.document


def refused(*edits: Any) -> str:
    """What is said of edits that cannot be made."""
    before = the_document()
    result = apply_edits(before, edits)
    assert result.document is before
    assert before == the_document()
    assert result.changes == ()
    return "\n".join(result.errors)


def items(document: Document) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["inventory"]["main_bag"]["items"]
    return found


class TestWhatTheyDo:
    def test_set_puts_a_value_into_a_field(self) -> None:
        assert items(made(["SET", "item_sword_01.count", 0]))[0]["count"] == 0
        assert made(["SET", "location", "cave"])["location"] == "cave"
        assert made(["SET", "inventory/belt.slots", 4])["inventory"]["belt"]["slots"] == 4
        assert made(["SET", "q_001.after", ["q_002"]])["events"][0]["after"] == ["q_002"]
        assert made(["set", " t1.status ", "done"])["tasks"][0]["status"] == "done"

    def test_a_field_that_only_its_like_has(self) -> None:
        assert made(["SET", "q_002.after", ["q_001"]])["events"][1]["after"] == ["q_001"]

    def test_increment_adds_to_a_number(self) -> None:
        assert items(made(["INC", "item_potion_02.count", -1]))[1]["count"] == 1
        assert made(["INC", "health", 0.5])["health"] == 85.5
        after = made(["SET", "health", 0.1], ["INC", "health", 0.2])
        assert after["health"] == 0.3

    def test_push_appends_to_a_list(self) -> None:
        after = made(["PUSH", "bag_main", {"name": "Apple"}])
        assert items(after)[3] == {"id": "bag_main_4", "name": "Apple"}
        assert made(["PUSH", "tasks", {"id": "t9", "title": "Rest"}])["tasks"][2]["id"] == "t9"
        assert made(["PUSH", "notes", "it is dark"])["notes"][1] == "it is dark"
        assert made(["PUSH", "q_001.after", "q_002"])["events"][0]["after"] == ["q_0", "q_002"]

    def test_remove_takes_a_thing_or_a_field_away(self) -> None:
        after = made(["REMOVE", "item_potion_02"])
        assert [i["id"] for i in items(after)] == ["item_sword_01", "item_lamp_03"]
        assert "priority" not in made(["REMOVE", "t1.priority"])["tasks"][0]
        assert "location" not in made(["REMOVE", "location"])

    def test_later_ones_see_what_earlier_ones_did(self) -> None:
        after = made(
            ["PUSH", "bag_main", {"id": "apple", "name": "Apple", "count": 1}],
            ["INC", "apple.count", 4],
            ["REMOVE", "item_sword_01"],
            ["PUSH", "bag_main", {"name": "Rope"}],
        )
        assert [(i["id"], i.get("count")) for i in items(after)] == [
            ("item_potion_02", 2),
            ("item_lamp_03", 4),
            ("apple", 5),
            ("bag_main_4", None),
        ]

    def test_new_ids_go_on_from_numbers(self) -> None:
        document = {"rows": [{"id": 7, "name": "a"}]}
        after = apply_edits(document, [["PUSH", "rows", {"name": "b"}]]).document
        assert after["rows"][1] == {"id": 8, "name": "b"}

    def test_things_that_have_no_ids_get_none(self) -> None:
        document = {"rows": [{"name": "a"}], "empty": []}
        edits = [["PUSH", "rows", {"name": "b"}], ["PUSH", "empty", {"name": "c"}]]
        after = apply_edits(document, edits).document
        assert after["rows"][1] == {"name": "b"}
        assert after["empty"] == [{"id": "empty_1", "name": "c"}]

    def test_changes_are_told_by_the_names_of_things(self) -> None:
        edits = [["SET", "item_sword_01.count", 0], ["PUSH", "bag_main", {"name": "Apple"}]]
        sword, apple = apply_edits(the_document(), edits).changes
        assert (sword.label, sword.field, sword.value) == ("Iron Sword", "count", 0)
        assert (apple.label, apple.value) == ("bag_main", "Apple")


class TestWhatIsRefused:
    @each_row(
        ("edit", "told"),
        [
            (["SET", "item_swrd_01.count", 0], "Did you mean item_sword_01?"),
            (["SET", "sword.count", 0], "Did you mean item_sword_01?"),
            (["SET", "item_sword_01.cuont", 0], "no field 'cuont': it has name, count. Did you"),
            (["SET", "item_sword_01.count", "3"], "has to be a number, not a text"),
            (["SET", "health", None], "has to be a number, not null"),
            (["SET", "health", True], "has to be a number, not true or false"),
            (["SET", "notes", "x"], "has to be a list, not a text"),
            (["SET", "item_sword_01", 0], "name a field of it, of name, count"),
            (["SET", "item_sword_01.id", "x"], "never changes"),
            (["SET", "bag_main._anchor", "x"], "never changes"),
            (["SET", "bag_main.items", []], "is not one value"),
            (["SET", "tasks", []], "is not one value"),
            (["SET", "inventory", 3], "is a whole thing"),
            (["SET", "helth", 3], "nothing with the anchor 'helth'. Did you mean health?"),
            (["SET", "", 3], "has to be a text such as"),
            (["SET", "inventory.main_bag.items[0].count", 0], "goes too deep"),
            (["SET", "character.inventory.main_bag.count", 0], "goes too deep"),
            (["SET", "bag_main.items[0]", 0], "no field 'items[0]'"),
            (["SET", ".count", 0], "nothing with the anchor"),
            (["SET", "item_sword_01.", 0], "nothing with the anchor"),
            (["SET", "health", math.nan], "nan is no JSON number"),
            (["SET", "health", 2**64], "more than 64 bits"),
            (["SET", "location", {"a": object()}], "value.a: object is no JSON"),
            (["INC", "location", 1], "location has to be a number, not a text"),
            (["INC", "health", "1"], "what is added has to be a number"),
            (["INC", "health", math.inf], "inf is no JSON number"),
            (["INC", "health", 2**60], "too large a number"),
            (["INC", "item_sword_01.weight", 1], "has to be a number, not null"),
            (["PUSH", "item_sword_01", {"name": "x"}], "is no list"),
            (["PUSH", "health", 1], "is no list"),
            (["PUSH", "inventory", {}], "is no list"),
            (["PUSH", "bag_main", "Apple"], "has to be an object, not a text"),
            (["PUSH", "bag_main", {"nmae": "x"}], "Did you mean name?"),
            (["PUSH", "bag_main", {"name": 3}], "name has to be a text, not a number"),
            (
                ["PUSH", "bag_main", {"id": "t1"}],
                "the anchor 't1' names two things, document.inventory.main_bag.items[3] and",
            ),
            (["PUSH", "notes", 3], "has to be a text, not a number"),
            (["REMOVE", "bag_main"], "remove them one by one first"),
            (["REMOVE", "inventory"], "a part of the document that stays"),
            (["REMOVE", "tasks"], "holds things"),
            (["REMOVE", "t1.due"], "t1.due is not there: the fields are title, status, priority"),
            (["REMOVE", "t1.id"], "never changes"),
            (["MOVE", "t1", "t2"], "there is no 'MOVE'"),
            ([3, "t1"], "there is no '3'"),
            (["SET", "t1.title"], 'has the form ["SET", "anchor.field", value]'),
            (["REMOVE", "t1", 2], 'has the form ["REMOVE", "anchor"]'),
            (["SET", 3, 4], "has to be a text such as anchor.field"),
            ([], "an edit is a list such as"),
            ("SET t1.title x", "an edit is a list such as"),
            (None, "an edit is a list such as"),
            ({"op": "SET"}, "an edit is a list such as"),
        ],
    )
    def test_with_a_way_out(self, edit: Any, told: str) -> None:
        assert told in refused(edit)

    def test_one_that_is_wrong_undoes_all(self) -> None:
        said = refused(
            ["SET", "health", 1], ["SET", "nothing", 1], ["PUSH", "notes", "x"], ["SET", "x.y", 2]
        )
        assert said.startswith("edit 2: ")
        assert "\nedit 4: " in said

    @pytest.mark.parametrize("count", [0, 101])
    def test_too_many_or_none(self, count: int) -> None:
        assert "give 1 to 100 edits" in refused(*[["INC", "health", 1]] * count)

    def test_a_hundred_edits_at_once_are_made(self) -> None:
        assert made(*[["INC", "health", 1]] * 100)["health"] == 185


class TestWithASchema:
    def test_what_a_schema_forbids_is_not_made(self) -> None:
        result = apply_edits(the_document(), [["SET", "health", 101]], make_checker(SCHEMA))
        assert result.errors == ("health: 101 is greater than the maximum of 100",)
        result = apply_edits(the_document(), [["REMOVE", "t1.title"]], make_checker(SCHEMA))
        assert result.errors == ("t1: 'title' is a required property",)

    def test_what_a_schema_allows_is_made(self) -> None:
        """A schema, if there is one, says which fields there may be."""
        edits = [["SET", "t1.due", "Monday"], ["SET", "weather", None]]
        after = apply_edits(the_document(), edits, make_checker(SCHEMA)).document
        assert after["tasks"][0]["due"] == "Monday"
        assert after["weather"] is None


class TestWhatNoDocumentMayBecome:
    """What a single edit cannot be seen to do, the whole is checked for."""

    def test_a_document_cannot_grow_ever_deeper(self) -> None:
        document: Document = {"things": [{"id": "a0", "in": []}]}
        for level in range(100):
            deeper = {"id": f"a{level + 1}", "in": []}
            result = apply_edits(document, [["PUSH", f"a{level}", deeper]])
            if result.errors:
                break
            document = result.document
        assert "nested more than 64 levels" in result.errors[0]
        assert parse_document(document) == document

    def test_a_number_without_end(self) -> None:
        document: Document = {"rows": [{"id": 2**64 - 1, "name": "a"}]}
        assert "64 bits" in apply_edits(document, [["PUSH", "rows", {"name": "b"}]]).errors[0]


PATHS = [
    *index_nodes(the_document()),
    *the_document(),
    *(f"{anchor}.{field}" for anchor in ("t1", "item_sword_01", "bag_main", "inventory/belt", "q_0")
      for field in ("id", "count", "items", "title", "slots", "after", "status", "priority")),
    "a.b.c", "t1..title", ".", "[0]", "t1.title.x", "__class__.x", "t1.__dict__", "../t1", "$ref",
]  # fmt: skip
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "name", "title", "count", "_anchor", "x"]) | st.text(max_size=4),
            inner,
            max_size=3,
        )
        | st.tuples(inner)
    ),
    max_leaves=8,
)
LIKELY = st.sampled_from(
    [0, 1, -1, 0.5, "done", "x", "t1", True, None, [], ["q_0"], {"name": "Apple"},
     {"title": "Rest"}, {"id": "t1"}, {"id": "new", "name": "N", "count": 1}, {"_anchor": "z"}]
)  # fmt: skip
EDIT = st.one_of(
    st.tuples(
        st.sampled_from(["SET", "INC", "PUSH", "REMOVE", "inc", "NOPE", "", 3]),
        st.sampled_from(PATHS) | st.text(max_size=12) | st.none(),
        LIKELY | ANYTHING,
    ),
    st.tuples(st.just("REMOVE"), st.sampled_from(PATHS)),
    st.tuples(
        st.sampled_from(["SET", "INC"]),
        st.sampled_from(["item_sword_01.count", "health", "t1.status", "t2.priority"]),
        st.sampled_from([0, 1, -2, "open"]),
    ),
    st.tuples(st.just("PUSH"), st.sampled_from(["bag_main", "tasks", "notes"]), LIKELY),
    ANYTHING,
)


def one_by_one(edits: list[Any]) -> Iterator[Document]:
    """The documents on the way, as a second, plain way of applying edits one after another."""
    document = the_document()
    for edit in edits:
        result = apply_edits(document, [edit])
        if result.errors:
            return
        document = result.document
        yield document


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EDIT, max_size=6), st.booleans())
def test_no_list_of_edits_leaves_half_of_it(edits: list[Any], with_schema: bool) -> None:
    before, given_edits = the_document(), copy.deepcopy(edits)
    digest = digest_json(before)
    check = make_checker(SCHEMA) if with_schema else None
    result = apply_edits(before, edits, check)
    assert digest_json(before) == digest, "what is given stays as it is"
    assert repr(edits) == repr(given_edits)
    if result.errors:
        assert result.document is before
        assert result.changes == ()
        assert all(error.encode() for error in result.errors), "errors can be stored"
        return
    assert len(result.changes) == len(edits)
    assert parse_document(result.document) == result.document, "what comes out is a document"
    json.dumps(result.document, allow_nan=False)
    assert check is None or check(result.document) == []
    if not with_schema:
        assert [*one_by_one(edits)][-1] == result.document
