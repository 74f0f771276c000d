"""The way from a message to its quotes has few numbers, in few files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import topicloom
from topicloom import Settings

QUOTED = (
    "search/need",
    "search/turn_topics",
    "search/ranking",
    "search/message_search",
    "state/quoting",
)
"""Which messages are quoted: whether any is, of which topics, in which order, and who decides."""
BESIDE = (
    *("search/contrast", "search/bm25", "search/sentences", "search/excerpts"),
    *("state/note_draft", "nodes/assemble"),
)
"""What a message is like, its words, its parts, and what fits the budget."""
SETTINGS = "recall_share", "recall_least"
_CACHES = "lru_cache", "LRUCache"


def read_numbers(module: str) -> Iterator[str]:
    """Numbers in constants of a module and in fields of its classes; sizes of caches are none."""
    tree = ast.parse((Path(topicloom.__file__).parent / f"{module}.py").read_text("utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    caches = [node for node in calls if ast.unparse(node.func) in _CACHES]
    sizes = {ast.unparse(size) for cache in caches for size in cache.args}
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    for statement in (*tree.body, *(field for node in classes for field in node.body)):
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) in sizes:
            continue
        for node in ast.walk(statement.value):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                yield f"{module}:{node.lineno} {node.value!r}"


def test_few_numbers_are_tuned() -> None:
    found = [number for module in (*QUOTED, *BESIDE) for number in read_numbers(module)]
    found += [f"{name} {Settings.model_fields[name].default}" for name in SETTINGS]
    assert len(found) <= 40, "\n".join(found)
