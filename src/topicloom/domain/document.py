"""The application's document: facts that have to be exact, and the anchors they are named by.

An anchor names one object of the document. It is the object's `_anchor` if it has one, else its
`id`. An object with neither is named by where it stands: its key at the top, further down the
anchor of the object around it, a slash and its key (`bag_main/pockets`). What stands in a list
without an `id` has no anchor: its place may change.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from topicloom.errors import InputError
from topicloom.prompts.loader import load_words
from topicloom.state.safe_text import digest_text

Document = dict[str, Any]
"""JSON-native data: an object."""
DocumentEvent = Mapping[str, Any]
"""An object of the document that says what is to be done or was: a task, a quest, an order."""

_DEEPEST = 64
"""Levels of nesting; no document needs more, and a cycle has no end."""
_LABELS = ("name", "title", "label", "objective", "text", "名称", "名字", "标题", "目标")
"""Fields that people call a thing by, best first."""
_OVER = load_words("over")
_SMALLEST_INT, _LARGEST_INT = -(2**63), 2**64 - 1
_HALF = re.compile(r"[\ud800-\udfff]")


_Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """An object of the document that has an anchor."""

    anchor: str
    """Empty for the document itself."""
    value: dict[str, Any]
    parent: dict[str, Any] | list[Any] | None
    """The object or list around it; None for the document itself."""
    path: _Path
    """The way to it from "document"."""
    has_own_anchor: bool
    """False if it is named by where it stands."""

    @property
    def key(self) -> str:
        """Its key in the object around it; empty in a list."""
        key = self.path[-1]
        return key if isinstance(key, str) and self.parent is not None else ""


def parse_document(value: object) -> Document:
    """A document as it came from outside, as a copy of its own.

    Raises:
        InputError: If it is no JSON object, or two of its objects have one anchor; names the path.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"the document has to be a JSON object, not {type(value).__name__}")
    document: Document = to_json_native(value, "document")
    index_nodes(document)
    return document


def to_json_native(value: object, path: str) -> Any:
    """A copy of a value as JSON-native data; the path is for the error.

    Raises:
        InputError: If JSON, or a checkpoint, cannot hold it.
    """
    return _to_native(value, (path,))


def _to_native(value: object, path: _Path) -> Any:
    if len(path) > _DEEPEST and isinstance(value, Mapping | list | tuple):
        deep = f"{_format_path(path[:6])}...: nested more than {_DEEPEST} levels deep"
        raise InputError(deep)
    if fault := _find_fault(value):
        raise InputError(f"{_format_path(path)}: {fault}")
    if isinstance(value, Mapping):
        return {_to_native(k, path): _to_native(v, (*path, k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_to_native(v, (*path, n)) for n, v in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    # Of a subclass, such as an enum of texts, the plain value.
    return next(kind(value) for kind in (str, int, float) if isinstance(value, kind))


def _find_fault(value: object) -> str:
    """The reason why JSON, or a checkpoint, cannot hold a value; empty if it can."""
    match value:
        case str():
            if not value.isascii() and _HALF.search(value):
                return "half a character, which UTF-8 cannot hold"
            return "a text may not hold the character NUL" if "\0" in value else ""
        case Mapping():
            key = next((key for key in value if not isinstance(key, str)), "")
            return "" if isinstance(key, str) else f"the key {str(key)[:40]!r} is no text"
        case int():
            fits = _SMALLEST_INT <= value <= _LARGEST_INT
            return "" if fits else "an integer of more than 64 bits"
        case float():
            return "" if math.isfinite(value) else f"{value} is no JSON number"
        case None | list() | tuple():
            return ""
    return f"{type(value).__name__} is no JSON"


def _format_path(path: _Path) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path[1:])
    text = f"{path[0]}{''.join(steps)}"[:200]
    return text.encode("utf-8", "replace").decode()


def index_nodes(document: Document) -> dict[str, DocumentNode]:
    """Every object that has an anchor, by its anchor; the document itself by "".

    Raises:
        InputError: If two have the same.
    """
    nodes: dict[str, DocumentNode] = {}
    for node in _walk(document):
        first = nodes.setdefault(node.anchor, node)
        if first is not node:
            raise _make_clash(first, node.path)
    for key, value in document.items():
        named = nodes.get(key)
        if named is not None and named.has_own_anchor and named.value is not value:
            raise _make_clash(named, ("document", key))
    return nodes


def _make_clash(node: DocumentNode, other: _Path) -> InputError:
    return InputError(
        f"the anchor {node.anchor!r} names two things, {_format_path(node.path)} and "
        f"{_format_path(other)}: give one of them an `_anchor` of its own"
    )


def find_derived_anchors(document: Document) -> dict[int, str]:
    """Anchors of the objects that are named by where they stand, by `id()` of the object."""
    return {id(n.value): n.anchor for n in _walk(document) if n.anchor and not n.has_own_anchor}


def _walk(
    value: dict[str, Any] | list[Any],
    derived: str | None = "",
    path: _Path = ("document",),
    parent: dict[str, Any] | list[Any] | None = None,
) -> Iterator[DocumentNode]:
    """The objects that have an anchor, in order; `derived` is that of where the value stands."""
    below: Iterable[tuple[str | int, Any]]
    if isinstance(value, list):
        anchor, below = None, enumerate(value)
    else:
        own = get_anchor(value) if parent is not None else None
        anchor, below = derived if own is None else own, value.items()
        if anchor is not None:
            yield DocumentNode(anchor, value, parent, path, own is not None)
    for key, child in below:
        if isinstance(child, dict | list):
            named = anchor is not None and isinstance(key, str) and key and key.isprintable()
            inner = f"{anchor}/{key}" if anchor else str(key)
            yield from _walk(child, inner if named else None, (*path, key), value)


def get_anchor(value: Mapping[str, Any]) -> str | None:
    """The anchor that an object has by itself, if it has one."""
    for name in ("_anchor", "id"):
        own = value.get(name)
        if isinstance(own, str) and own and own.isprintable():
            return own
        if isinstance(own, int) and not isinstance(own, bool):
            return str(own)
    return None


def has_anchors(value: object) -> bool:
    """True if a value is, or holds, an object that has an anchor by itself."""
    if isinstance(value, dict):
        return get_anchor(value) is not None or any(map(has_anchors, value.values()))
    return isinstance(value, list) and any(map(has_anchors, value))


def get_label(value: Mapping[str, Any]) -> str:
    """The name that people give a thing: its name or title, else its anchor, else ""."""
    names = (v for k in _LABELS if isinstance(v := value.get(k), str) and v.strip())
    return next(names, "") or get_anchor(value) or ""


def digest_json(document: Document) -> str:
    """16 hex digits that stand for what a document says, whatever the order of its keys."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False)
    return digest_text(text)


def list_events(document: Document, key: str) -> list[DocumentEvent]:
    """The events of a document in its order: the objects listed under `key`."""
    listed = document.get(key)
    return [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else []


def list_active_events(document: Document, key: str) -> list[DocumentEvent]:
    return [e for e in list_events(document, key) if is_active(e)]


def is_active(event: DocumentEvent) -> bool:
    """True if an event goes on: it has not ended by any word that is known for that."""
    if event.get("done") is True or event.get("completed") is True:
        return False
    status = event.get("status")
    return not (isinstance(status, str) and status.strip().lower().replace(" ", "_") in _OVER)
