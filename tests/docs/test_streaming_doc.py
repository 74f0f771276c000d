"""The page on streaming knows every event that the code sends, and no other."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from topicloom import Call, Receipt, TopicNote
from topicloom.state.session import Search

ROOT = Path(__file__).parents[2]


def examples() -> dict[str, dict[str, Any]]:
    page = (ROOT / "docs" / "guides" / "streaming.md").read_text("utf-8")
    found = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    return {event["type"]: event for event in found}


def sent() -> Iterator[tuple[str, set[str]]]:
    """Type and further fields of every event in the source."""
    texts = (path.read_text("utf-8") for path in (ROOT / "src" / "topicloom").rglob("*.py"))
    for text in texts:
        for node in ast.walk(ast.parse(text)) if "emit(" in text else ():
            match node:
                case ast.Call(func=ast.Name(id="emit"), args=[ast.Constant(value=str(kind))]):
                    yield kind, {keyword.arg or "" for keyword in node.keywords}


def test_every_event_has_an_example_with_its_fields() -> None:
    documented = {kind: event.keys() - {"type"} for kind, event in examples().items()}
    assert documented == dict(sent())


def test_the_receipt_of_the_example_is_whole() -> None:
    receipt = examples()["receipt"]["receipt"]
    assert receipt.keys() == Receipt.model_fields.keys()
    assert all(call.keys() == Call.model_fields.keys() for call in receipt["calls"])
    assert all(note.keys() == TopicNote.model_fields.keys() for note in receipt["quoted"])
    assert all(search.keys() == Search.model_fields.keys() for search in receipt["searches"])
    assert Receipt.model_validate(receipt).model_dump(mode="json") == receipt
