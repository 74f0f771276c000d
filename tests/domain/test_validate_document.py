"""The application's JSON schema: checked itself, and told in the words of edits."""

from __future__ import annotations

from typing import Any

import pytest
from domains import the_document
from tables import each_row

from topicloom import ConfigurationError, InputError
from topicloom.domain.validate_document import make_checker, validate_document


def test_a_document_that_fits_comes_back_as_a_copy() -> None:
    document = the_document()
    kept = validate_document(document, make_checker({"type": "object"}))
    assert kept == document
    assert kept is not document
    assert validate_document(document, None) == document


def test_faults_are_told_by_flat_paths() -> None:
    schema: dict[str, Any] = {
        "properties": {
            "health": {"type": "string"},
            "tasks": {"items": {"properties": {"status": {"enum": ["open", "done"]}}}},
            "inventory": {"properties": {"belt": {"properties": {"slots": {"maximum": 2}}}}},
        },
        "required": ["mood"],
    }
    with pytest.raises(InputError) as error:
        validate_document(the_document(), make_checker(schema))
    told = str(error.value)
    assert told.startswith("the document does not fit the schema: ")
    assert "health: 85 is not of type 'string'" in told
    assert "t2.status: 'completed' is not one of ['open', 'done']" in told
    assert "inventory.belt.slots: 3 is greater than the maximum of 2" in told


def test_long_values_are_cut() -> None:
    with pytest.raises(InputError) as error:
        validate_document(
            {"a": "x" * 5_000}, make_checker({"properties": {"a": {"type": "number"}}})
        )
    assert len(str(error.value)) < 400


@each_row("schema", [{"type": "nothing"}, {"properties": 3}, {"minimum": "x"}])
def test_what_is_no_schema(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"domain\.schema is not a JSON schema"):
        make_checker(schema)


def test_nothing_is_fetched() -> None:
    check = make_checker({"$ref": "https://example.invalid/schema.json"})
    with pytest.raises(ConfigurationError, match="has a reference that does not exist in it"):
        check({})


def test_drafts_are_told_apart() -> None:
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"const": 1}}}
    assert make_checker(old)({"a": 2}) == ["a: 1 was expected"]
