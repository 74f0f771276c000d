"""The types of the page are those of the server: a field of a receipt is declared once."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from scripts.generate.page_types import show_type

from topicloom_app.ui.answers import PageEvent

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"$ref": "#/$defs/Call"}, "Call"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "null"}]}, "number | null"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "array", "prefixItems": [{"type": "string"}, {}]}, "[string, unknown]"),
        (
            {"type": "object", "additionalProperties": {"type": "boolean"}},
            "Record<string, boolean>",
        ),
        ({"const": "text", "type": "string"}, '"text"'),
    ],
)
def test_a_schema_becomes_a_type(schema: Any, shown: str) -> None:
    assert show_type(schema) == shown


def test_every_event_of_a_turn_has_a_type() -> None:
    """The graph sends events by `emit`; one that the page has no type for would be passed over."""
    sent = {
        node.args[0].value
        for path in (ROOT / "src" / "topicloom" / "nodes").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "emit"
        if isinstance(node.args[0], ast.Constant)
    }
    typed = {
        kind
        for event in get_args(get_args(PageEvent)[0])
        for kind in get_args(get_type_hints(event)["type"])
    }
    assert {"split", "receipt"} <= sent <= typed


def test_a_schema_without_a_type_is_refused() -> None:
    with pytest.raises(ValueError, match="add it to show_type"):
        show_type({"not": {"type": "string"}})
