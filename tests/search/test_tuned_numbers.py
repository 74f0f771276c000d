"""The way from a message to its quotes has few numbers, in few files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import topicloom

WAY = ("search/ranking", "search/message_search", "search/turn_topics")
"""Which messages are quoted, and in which order, but for what is cut off by the budget."""
BESIDE = ("search/need", "search/contrast", "search/bm25")
"""Whether a message needs any, and its words."""


def numbers_in(module: str) -> Iterator[str]:
    """Numbers in constants of a module and in fields of its classes; sizes of caches are none."""
    tree = ast.parse((Path(topicloom.__file__).parent / f"{module}.py").read_text("utf-8"))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    for statement in (*tree.body, *(field for node in classes for field in node.body)):
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        for node in ast.walk(statement.value):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                yield f"{module}:{node.lineno} {node.value!r}"


def test_few_numbers_are_tuned() -> None:
    found = [number for module in (*WAY, *BESIDE) for number in numbers_in(module)]
    assert len(found) <= 40, "\n".join(found)
