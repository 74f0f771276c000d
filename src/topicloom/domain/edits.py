"""Edits of the document: flat, checked, all of them or none.

    ["SET", "item_sword_01.count", 0]      ["INC", "item_potion_02.count", -1]
    ["PUSH", "bag_main", {"name": "Apple"}]      ["REMOVE", "item_potion_02"]

A path is an anchor, an anchor and a field with one dot between them, or a field of the document
itself. Where no JSON schema says what may be, the document does: a field has to be one that the
object or one of its like has, and a value stays of its kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

from topicloom.domain.document import (
    Document,
    get_anchor,
    get_label,
    has_anchors,
    index_nodes,
    parse_document,
    to_json_native,
)
from topicloom.domain.targets import (
    EditRefusedError,
    EditTarget,
    describe_kind,
    list_fields,
    resolve_path,
    suggest_similar,
)
from topicloom.errors import InputError
from topicloom.roles.markup import find_json_values
from topicloom.state.journal import JournalEntry
from topicloom.state.safe_text import clip

Operation = Literal["SET", "INC", "PUSH", "REMOVE"]
DocumentCheck = Callable[[Document], list[str]]
"""Gives the faults of a document by a JSON schema, a sentence each."""

_LENGTHS: dict[Operation, int] = {"SET": 3, "INC": 3, "PUSH": 3, "REMOVE": 2}
_MOST = 100
_LARGEST = 2**53
"""Numbers up to this are exact in every JSON reader."""
_MOST_ERRORS = 8
_ALIASES = {"ADD": "PUSH", "APPEND": "PUSH", "DELETE": "REMOVE", "INCREMENT": "INC"}
_MOST_WRAPPED = 4


def parse_edits(said: object) -> list[object]:
    """The edits of a tool's arguments or of an answer, read leniently; not checked yet.

    Takes `{"edits": [[...]]}`, a list of edits, one edit alone, edits as objects (`{"op": "SET",
    "path": ..., "value": ...}`), and JSON of any of these.
    """
    for _ in range(_MOST_WRAPPED):
        if isinstance(said, str):
            said = next(find_json_values(said), None)
        elif isinstance(said, dict) and "edits" in said:
            said = said["edits"]
    entries = [said] if _is_edit(said) else said
    return list(map(_read_edit, entries)) if isinstance(entries, list | tuple) else []


def _is_edit(value: object) -> bool:
    if isinstance(value, dict):
        return "op" in value
    first = value[0] if isinstance(value, list | tuple) and value else None
    return isinstance(first, str) and _name_operation(first) in _LENGTHS


def _read_edit(value: Any) -> object:
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, dict) and "op" in value:
        value = [value["op"], value.get("path"), *([value["value"]] if "value" in value else [])]
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return [_name_operation(value[0]), *value[1:]]
    return value


def _name_operation(said: str) -> str:
    upper = said.strip().upper()
    return _ALIASES.get(upper, upper)


@dataclass(frozen=True, slots=True)
class AppliedEdit:
    """An edit that was made, in the words of a confirmation."""

    operation: Operation
    label: str
    """The changed object, or the list that something went into."""
    field: str = ""
    value: Any = None
    """The new value of the field, or what was pushed."""


@dataclass(frozen=True, slots=True)
class EditResult:
    """The outcome of some edits."""

    document: Document
    """The new document; the old one, the same object, if anything was wrong."""
    changes: tuple[AppliedEdit, ...] = ()
    errors: tuple[str, ...] = ()
    """Each says how to repair an edit."""


def apply_edits(
    document: Document, edits: Sequence[object], check: DocumentCheck | None = None
) -> EditResult:
    """Apply edits in order to a copy of a document: all of them, or none."""
    if not 1 <= len(edits) <= _MOST:
        return EditResult(document, errors=(f"give 1 to {_MOST} edits at once, not {len(edits)}",))
    changed = deepcopy(document)
    changes: list[AppliedEdit] = []
    errors: list[str] = []
    for number, edit in enumerate(edits, 1):
        try:
            changes.append(_apply_edit(changed, edit, strict=check is None))
        except (EditRefusedError, InputError) as error:
            errors.append(f"edit {number}: {error}")
    errors = errors or _find_faults(changed, check)
    if errors:
        # An error quotes what it was given, which may be no text that can be stored.
        storable = (clip(e) for e in errors[:_MOST_ERRORS])
        return EditResult(document, errors=tuple(storable))
    return EditResult(changed, tuple(changes))


def replay_edits(
    document: Document, journal: Sequence[JournalEntry], check: DocumentCheck | None
) -> tuple[Document, tuple[str, ...]]:
    """Make the edits of a journal in a document; what is wrong with an entry leaves it out."""
    results = []
    for entry in journal:
        results.append(apply_edits(document, entry.edits, check))
        document = results[-1].document
    return document, tuple(error for result in results for error in result.errors)


def _find_faults(document: Document, check: DocumentCheck | None) -> list[str]:
    try:
        parse_document(document)
    except InputError as error:
        return [str(error)]
    return check(document) if check else []


def _apply_edit(document: Document, edit: object, *, strict: bool) -> AppliedEdit:
    """Make an edit in a document; if `strict`, what is there says what may be."""
    operation, path, value = _parse_edit(edit)
    target = resolve_path(index_nodes(document), path, new=operation == "SET" and not strict)
    match operation:
        case "SET":
            return _set(target, to_json_native(value, "value"), strict)
        case "INC":
            return _increment(target, value)
        case "PUSH":
            return _push(document, target, to_json_native(value, "value"), strict)
    return _remove(target)


def _set(target: EditTarget, value: Any, strict: bool) -> AppliedEdit:
    owner, field = target.require_field()
    old = owner.get(field)
    if has_anchors(old) or isinstance(old, dict):
        raise EditRefusedError(
            f"{target.path} is not one value: change what is in it by its own anchor"
        )
    if strict:
        called = target.node.anchor or "the document"
        _check_value(field, value, target.list_siblings(), called, target.path)
    owner[field] = value
    return AppliedEdit("SET", target.label, field, value)


def _push(document: Document, target: EditTarget, value: Any, strict: bool) -> AppliedEdit:
    listed = target.require_list()
    likes = [v for v in listed if isinstance(v, dict)]
    if strict and listed and describe_kind(value) not in map(describe_kind, listed):
        kind = describe_kind(listed[0])
        raise EditRefusedError(
            f"what is pushed to {target.path} has to be {kind}, not {describe_kind(value)}"
        )
    if strict and isinstance(value, dict) and likes:
        for field, given in value.items():
            if field not in ("id", "_anchor") and given is not None:
                _check_value(field, given, likes, f"what is in {target.path}", field)
    if isinstance(value, dict) and get_anchor(value) is None:
        value = _add_id(value, listed, likes, target, document)
    listed.append(value)
    shown = get_label(value) if isinstance(value, dict) else value
    return AppliedEdit("PUSH", target.label or target.field or "", value=shown)


def _add_id(
    value: Document,
    listed: list[Any],
    likes: list[Document],
    target: EditTarget,
    document: Document,
) -> Document:
    ids = [like["id"] for like in likes if get_anchor(like) and "id" in like]
    if likes and not ids:
        return value
    if ids and all(isinstance(i, int) for i in ids):
        return {"id": max(ids) + 1, **value}
    named = {*index_nodes(document), *document}
    owner = target.node.anchor or target.field or "item"
    stem, number = re.sub("[./]", "_", owner), len(listed) + 1
    while f"{stem}_{number}" in named:
        number += 1
    return {"id": f"{stem}_{number}", **value}


def _check_value(
    field: str, value: Any, likes: Sequence[Mapping[str, Any]], owner: str, path: str
) -> None:
    """Refuse a field that none of the objects alike has, and a kind that it has in none."""
    known = {name: None for like in likes for name in like}
    if field not in known:
        raise EditRefusedError(
            f"{owner} has no field {field!r}: "
            f"it has {list_fields(known)}{suggest_similar(field, known)}"
        )
    kinds = [describe_kind(like[field]) for like in likes if like.get(field) is not None]
    if kinds and describe_kind(value) not in kinds:
        raise EditRefusedError(f"{path} has to be {kinds[0]}, not {describe_kind(value)}")


def _increment(target: EditTarget, by: Any) -> AppliedEdit:
    owner, field = target.require_field()
    old = owner.get(field)
    for what, number in ((target.path, old), ("what is added", by)):
        if describe_kind(number) != "a number":
            raise EditRefusedError(f"{what} has to be a number, not {describe_kind(number)}")
    number = to_json_native(old + to_json_native(by, "value"), target.path)
    number = round(number, 10)  # 0.1 + 0.2 is 0.3 to people
    if abs(number) > _LARGEST:
        raise EditRefusedError(f"{target.path} would be too large a number")
    owner[field] = number
    return AppliedEdit("INC", target.label, field, number)


def _remove(target: EditTarget) -> AppliedEdit:
    if target.field is not None:
        owner, field = target.require_field()
        if field not in owner:
            known = list_fields(owner)
            raise EditRefusedError(f"{target.path} is not there: the fields are {known}")
        if has_anchors(owner[field]) or isinstance(owner[field], dict):
            raise EditRefusedError(f"{target.path} holds things: remove them one by one")
        del owner[field]
        return AppliedEdit("REMOVE", target.label, field)
    found = target.node
    if not found.has_own_anchor or found.parent is None:
        raise EditRefusedError(f"{target.path} is a part of the document that stays")
    if any(map(has_anchors, found.value.values())):
        raise EditRefusedError(f"{target.path} holds things: remove them one by one first")
    if isinstance(found.parent, list):
        found.parent[:] = [v for v in found.parent if v is not found.value]
    else:
        del found.parent[found.key]
    return AppliedEdit("REMOVE", target.label)


def _parse_edit(edit: object) -> tuple[Operation, str, Any]:
    """Operation, path and value of an edit; refused if it has not the form of one."""
    if not isinstance(edit, list | tuple) or not edit:
        raise EditRefusedError('an edit is a list such as ["SET", "anchor.field", value]')
    operation: Any = edit[0].upper() if isinstance(edit[0], str) else ""
    if operation not in _LENGTHS:
        raise EditRefusedError(f"there is no {str(edit[0])[:40]!r}: use SET, INC, PUSH or REMOVE")
    length = _LENGTHS[operation]
    if len(edit) != length:
        form = '["REMOVE", "anchor"]' if length == 2 else f'["{operation}", "anchor.field", value]'
        raise EditRefusedError(f"{operation} has the form {form}")
    if not isinstance(edit[1], str) or not edit[1].strip():
        raise EditRefusedError(f"the path of {operation} has to be a text such as anchor.field")
    return operation, edit[1].strip(), edit[2] if length == 3 else None
