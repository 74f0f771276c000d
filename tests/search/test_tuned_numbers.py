"""The way from a message to its quotes has few numbers, in few files.

Where topics begin and what belongs to one are models of their own, with weights that are trained.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
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
    *("search/encoders", "search/vectors", "search/centroids", "search/message_view"),
    *("state/note_draft", "nodes/retrieve", "nodes/assemble"),
)
"""What a message and a topic are like, words, parts of a message, and what fits the budget."""
ALONE = {"state/recall": ("LEAST_SCORE",)}
"""Modules of which no more than these constants are on the way."""
SETTINGS = "recall_share", "recall_least"
NOT_TUNED = {
    "sizes of caches, and of work that is done at a time": (
        *("_ALIKE", "_REMEMBERED", "_AT_ONCE", "_PART", "_MISSED", "_NEAREST", "GrowingRows"),
        *("LRUCache", "lru_cache", "reshape", "round"),
    ),
    "what an encoder reads, its version, and how long a failed one rests": (
        *("_CHARACTERS", "VERSION", "ForeignEmbedder"),
    ),
    "BM25 as it was published": ("K1", "_weigh"),
    "the length of an abbreviation, and tokens of lines that are always the same": (
        *("_LONGEST", "PromptCosts"),
    ),
    "a list and an average that quote nothing": ("_LISTED_BRIEF", "enter_note"),
    "where a topic begins": ("_RETURNS",),
}
"""Constants, fields, functions, classes and calls whose numbers decide no quote, or are given."""
_PLAIN = frozenset({0, 0.5, 1, 2})
"""What in a function says no more than "the rest" or "half"."""


def read_numbers(module: str) -> Iterator[str]:
    """The numbers of a module: those of constants and fields, and most that stand in functions."""
    tree = ast.parse((Path(topicloom.__file__).parent / f"{module}.py").read_text("utf-8"))
    return (f"{module}: {number!r}" for number in _read(tree, constant=True))


def _read(node: ast.AST, *, constant: bool) -> Iterator[float]:
    names = {name.partition(",")[0].strip("(") for name in _name(node)}
    if not names.isdisjoint(chain.from_iterable(NOT_TUNED.values())):
        return
    number = node.value if isinstance(node, ast.Constant) else True
    if isinstance(number, int | float) and not isinstance(number, bool):
        plain = number in _PLAIN or number < 1e-6
        yield from [] if plain and not constant else [number]
    constant &= not isinstance(node, ast.FunctionDef)
    for child in ast.iter_child_nodes(node):
        yield from _read(child, constant=constant)


def _name(node: ast.AST) -> list[str]:
    """The names that a statement gives a value to, or the one that is called."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Call):
        return [ast.unparse(node.func).rpartition(".")[2]]
    if isinstance(node, ast.Assign):
        return list(map(ast.unparse, node.targets))
    return [ast.unparse(node.target)] if isinstance(node, ast.AnnAssign) else []


def test_few_numbers_are_tuned() -> None:
    found = [number for module in (*QUOTED, *BESIDE) for number in read_numbers(module)]
    found += [f"{module}:{name}" for module, names in ALONE.items() for name in names]
    found += [f"{name} {Settings.model_fields[name].default}" for name in SETTINGS]
    assert len(found) <= 40, "\n".join(found)
