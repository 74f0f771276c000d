"""The application's document: facts that have to be exact, and the anchors they are named by.

An anchor names one object of the document. It is the object's `_anchor` if it has one, else its
`id`. An object with neither is named by where it stands: its key at the top, further down the
anchor of the object around it, a slash and its key (`bag_main/pockets`). What stands in a list
without an `id` has no anchor: its place may change.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeGuard

from topicloom.errors import InputError

Document = dict[str, Any]
"""JSON-native data: an object."""

REFUSED = "__refused__"
"""A key that no document has: it marks one that cannot be used."""
_DEEPEST = 64
"""Levels of nesting; no document needs more, and a cycle has no end."""
_NESTED = frozenset({dict, list})
_LABELS = ("name", "title", "label", "objective", "text", "名称", "名字", "标题", "目标")
"""Fields that people call a thing by, best first."""
_SMALLEST_INT, _LARGEST_INT = -(2**63), 2**64 - 1
"""What a checkpoint can hold."""


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """An object of the document that has an anchor."""

    anchor: str
    """Its anchor; empty for the document itself."""
    value: dict[str, Any]
    """The object."""
    parent: dict[str, Any] | list[Any] | None
    """What it stands in; None for the document itself."""
    key: str
    """Its key there; empty in a list."""
    given: bool
    """Whether it has its anchor by itself; otherwise it is named by where it stands."""


def parse_document(value: object) -> Document:
    """A document as it came from outside, as a copy of its own.

    Raises:
        InputError: If it is no JSON object, or two of its objects have one anchor; names the path.
    """
    if not isinstance(value, Mapping):
        raise InputError(f"the document has to be a JSON object, not {type(value).__name__}")
    document: Document = to_json_native(value, "document")
    if REFUSED in document:
        raise InputError(f"document.{REFUSED}: a key of that name is taken")
    index_nodes(document)
    return document


def to_json_native(value: object, path: str) -> Any:
    """A copy of a value as JSON-native data.

    Args:
        value: Anything.
        path: Where it stands, for the error.

    Raises:
        InputError: If JSON, or a checkpoint, cannot hold it.
    """
    return _to_native(value, (path,))


def copy_json(value: Any) -> Any:
    """A copy of JSON-native data."""
    if type(value) is dict:
        return {k: copy_json(v) for k, v in value.items()}
    return [copy_json(v) for v in value] if type(value) is list else value


_Path = tuple[str | int, ...]
"""Keys and places on the way to a value, after what it all is called."""


def _to_native(value: object, path: _Path) -> Any:
    if isinstance(value, str):
        return _check_text(value, path)
    if isinstance(value, Mapping):
        _check_depth(path)
        for key in value:
            if not isinstance(key, str):
                raise InputError(f"{_format_path(path)}: the key {str(key)[:40]!r} is no text")
        return {_check_text(k, path): _to_native(v, (*path, k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        _check_depth(path)
        return [_to_native(v, (*path, n)) for n, v in enumerate(value)]
    return _check_number(value, path)


def _check_number(value: object, path: _Path) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not _SMALLEST_INT <= value <= _LARGEST_INT:
            raise InputError(f"{_format_path(path)}: an integer of more than 64 bits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"{_format_path(path)}: {value} is no JSON number")
        return float(value)
    raise InputError(f"{_format_path(path)}: {type(value).__name__} is no JSON")


def _check_text(text: str, path: _Path) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            reason = f"{_format_path(path)}: half a character, which UTF-8 cannot hold"
            raise InputError(reason) from error
    if "\0" in text:
        raise InputError(f"{_format_path(path)}: a text may not hold the character NUL")
    return str(text)


def _check_depth(path: _Path) -> None:
    if len(path) > _DEEPEST:
        raise InputError(f"{_format_path(path[:6])}...: nested more than {_DEEPEST} levels deep")


def _format_path(path: _Path) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path[1:])
    text = f"{path[0]}{''.join(steps)}"[:200]
    return text.encode("utf-8", "replace").decode()


def index_nodes(document: Document) -> dict[str, DocumentNode]:
    """Every object that has an anchor, by its anchor; the document itself by "".

    Raises:
        InputError: If two have the same.
    """
    places: dict[str, DocumentNode] = {}
    for place in _walk(document):
        if place.anchor in places:
            one, other = (_find_path(document, p.value) for p in (places[place.anchor], place))
            raise InputError(
                f"the anchor {place.anchor!r} names two things, {one} and {other}: "
                "give one of them an `_anchor` of its own"
            )
        places[place.anchor] = place
    for key, value in document.items():
        if key in places and places[key].given and places[key].value is not value:
            raise InputError(
                f"the anchor {key!r} names two things,"
                f" {_find_path(document, places[key].value)} and document.{key}:"
                " give the former an `_anchor` of its own"
            )
    return places


def find_derived_anchors(document: Document) -> dict[int, str]:
    """Anchors of the objects that are named by where they stand, by `id()` of the object."""
    return {id(p.value): p.anchor for p in _walk(document, nested=True) if not p.given and p.anchor}


def _walk(document: Document, *, nested: bool = False) -> Iterator[DocumentNode]:
    """The objects that have an anchor, in the order of the document.

    Args:
        document: Where to begin.
        nested: Whether to pass over what stands in lists and holds no object.
    """
    ahead: list[_Pending] = [(document, None, "", "")]
    while ahead:
        value, parent, key, made = ahead.pop()
        own = get_anchor(value) if parent is not None else None
        anchor = made if own is None else own
        if anchor is not None:
            yield DocumentNode(anchor, value, parent, key, own is not None)
        below: list[_Pending] = []
        for name, child in value.items():
            if type(child) is dict:
                named = anchor is not None and name.isprintable() and name != ""
                other = f"{anchor}/{name}" if anchor else name
                below.append((child, value, name, other if named else None))
            elif type(child) is list:
                below += [(v, around, "", None) for v, around in _walk_list(child, nested)]
        ahead += reversed(below)


_Pending = tuple[dict[str, Any], dict[str, Any] | list[Any] | None, str, str | None]
"""An object to look at: what it stands in, its key there, and an anchor if it has none itself."""


def _walk_list(values: list[Any], nested: bool) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """The objects of a list and of the lists in it, each with the list that it stands in."""
    for value in values:
        if type(value) is dict:
            if not (nested and _NESTED.isdisjoint(map(type, value.values()))):
                yield value, values
        elif type(value) is list:
            yield from _walk_list(value, nested)


def _find_path(document: Document, thing: object) -> str:
    """The path of an object in the document, for an error."""
    ahead: list[tuple[object, _Path]] = [(document, ("document",))]
    while ahead:
        value, path = ahead.pop()
        if value is thing:
            return _format_path(path)
        if isinstance(value, dict):
            ahead += [(inner, (*path, key)) for key, inner in value.items()]
        elif isinstance(value, list):
            ahead += [(inner, (*path, n)) for n, inner in enumerate(value)]
    return "document"


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
    """Whether a value is, or holds, an object that has an anchor by itself."""
    if isinstance(value, dict):
        return get_anchor(value) is not None or any(map(has_anchors, value.values()))
    return isinstance(value, list) and any(map(has_anchors, value))


def get_label(value: Mapping[str, Any]) -> str:
    """What people call a thing: its name or title, else its anchor, else ""."""
    named = (value[key] for key in _LABELS if _is_text(value.get(key)))
    return next(named, None) or get_anchor(value) or ""


def find_label_field(value: Mapping[str, Any]) -> str | None:
    """The field that people call a thing by, if it has one."""
    return next((key for key in _LABELS if _is_text(value.get(key))), None)


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def digest_json(document: Document) -> str:
    """16 hex digits that stand for what a document says, whatever the order of its keys."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False)
    return sha256(text.encode()).hexdigest()[:16]
