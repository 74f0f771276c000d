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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from topicloom.domain.document import (
    Document,
    DocumentNode,
    copy_json,
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

Edit = tuple[Any, ...]
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
_WRAPPERS = ("edits", "operations", "ops")


def parse_edits(said: object, wrapped: int = 0) -> list[object]:
    """The edits of a tool's arguments or of an answer, read leniently; not checked yet.

    Takes `{"edits": [[...]]}`, a list of edits, one edit alone, edits as objects (`{"op": "SET",
    "path": ..., "value": ...}`), and JSON of any of these, `wrapped` levels deep in other things.
    """
    if wrapped > _MOST_WRAPPED:
        return []
    if isinstance(said, str):
        values = (value for value in find_json_values(said) if isinstance(value, dict | list))
        return next((edits for value in values if (edits := parse_edits(value, wrapped + 1))), [])
    if isinstance(said, dict):
        inner = next((said[name] for name in _WRAPPERS if name in said), None)
        if inner is not None:
            return parse_edits(inner, wrapped + 1)
        return [_read_edit(said)] if _is_edit(said) else []
    if isinstance(said, list | tuple):
        return [_read_edit(entry) for entry in ([said] if _is_edit(said) else said)]
    return []


def _is_edit(value: object) -> bool:
    if isinstance(value, dict):
        return bool({"op", "operation"} & value.keys())
    first = value[0] if isinstance(value, list | tuple) and value else None
    return isinstance(first, str) and _named(first) in _LENGTHS


def _read_edit(value: Any) -> object:
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, dict) and _is_edit(value):
        path = value.get("path", value.get("anchor", value.get("target")))
        rest = [value["value"]] if "value" in value else []
        value = [value.get("op", value.get("operation")), path, *rest]
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return [_named(value[0]), *value[1:]]
    return value


def _named(operation: str) -> str:
    upper = operation.strip().upper()
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
    work = _EditTrial(copy_json(document), strict=check is None)
    changes: list[AppliedEdit] = []
    errors: list[str] = []
    for number, edit in enumerate(edits, 1):
        try:
            changes.append(work.apply(edit))
        except (EditRefusedError, InputError) as error:
            errors.append(f"edit {number}: {error}")
    errors = errors or work.find_faults(check)
    if errors:
        # An error quotes what it was given, which may be no text that can be stored.
        storable = (clip(e) for e in errors[:_MOST_ERRORS])
        return EditResult(document, errors=tuple(storable))
    return EditResult(work.document, tuple(changes))


def replay_edits(
    document: Document, journal: Sequence[JournalEntry], check: DocumentCheck | None
) -> tuple[Document, tuple[str, ...]]:
    """Make the edits of a journal in a document; what is wrong with an entry leaves it out."""
    results = []
    for entry in journal:
        results.append(apply_edits(document, entry.edits, check))
        document = results[-1].document
    return document, tuple(error for result in results for error in result.errors)


@dataclass(slots=True)
class _EditTrial:
    """A copy of a document on which edits are tried."""

    document: Document
    strict: bool
    nodes: dict[str, DocumentNode] | None = None

    def find_faults(self, check: DocumentCheck | None) -> list[str]:
        try:
            parse_document(self.document)
        except InputError as error:
            return [str(error)]
        return check(self.document) if check else []

    def apply(self, edit: object) -> AppliedEdit:
        operation, path, value = _parse_edit(edit)
        if self.nodes is None:
            self.nodes = index_nodes(self.document)
        target = resolve_path(self.nodes, path, new=operation == "SET" and not self.strict)
        match operation:
            case "SET":
                return self._set(target, to_json_native(value, "value"))
            case "INC":
                return self._increment(target, value)
        self.nodes = None
        if operation == "PUSH":
            return self._push(target, to_json_native(value, "value"))
        return self._remove(target)

    def _set(self, target: EditTarget, value: Any) -> AppliedEdit:
        owner, field = target.require_field()
        old = owner.get(field)
        if has_anchors(old) or isinstance(old, dict):
            raise EditRefusedError(
                f"{target.path} is not one value: change what is in it by its own anchor"
            )
        if self.strict:
            self._check_field(target, value)
        owner[field] = value
        self.nodes = None if isinstance(value, dict | list) else self.nodes
        return AppliedEdit("SET", target.label, field, value)

    def _check_field(self, target: EditTarget, value: Any) -> None:
        assert target.field is not None
        known = {k for like in target.list_siblings() for k in like}
        if target.field not in known:
            raise EditRefusedError(
                f"{target.node.anchor or 'the document'} has no field {target.field!r}: "
                f"it has {list_fields(target.node.value)}{suggest_similar(target.field, known)}"
            )
        others = (like.get(target.field) for like in target.list_siblings())
        kinds = [describe_kind(other) for other in others if other is not None]
        if kinds and describe_kind(value) not in kinds:
            raise EditRefusedError(
                f"{target.path} has to be {kinds[0]}, not {describe_kind(value)}"
            )

    def _increment(self, target: EditTarget, by: Any) -> AppliedEdit:
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

    def _push(self, target: EditTarget, value: Any) -> AppliedEdit:
        listed = target.require_list()
        likes = [v for v in listed if isinstance(v, dict)]
        if self.strict and listed and describe_kind(value) not in map(describe_kind, listed):
            kind = describe_kind(listed[0])
            raise EditRefusedError(
                f"what is pushed to {target.path} has to be {kind}, not {describe_kind(value)}"
            )
        if self.strict and isinstance(value, dict) and likes:
            _check_like(value, likes, target.path)
        if isinstance(value, dict) and get_anchor(value) is None:
            value = self._add_id(value, listed, likes, target)
        listed.append(value)
        shown = get_label(value) if isinstance(value, dict) else value
        return AppliedEdit("PUSH", target.label or target.field or "", value=shown)

    def _add_id(
        self, value: Document, listed: list[Any], likes: list[Document], target: EditTarget
    ) -> Document:
        ids = [like["id"] for like in likes if get_anchor(like) and "id" in like]
        if likes and not ids:
            return value
        if ids and all(isinstance(i, int) for i in ids):
            return {"id": max(ids) + 1, **value}
        named = {*index_nodes(self.document), *self.document}
        owner = target.node.anchor or target.field or "item"
        stem, number = re.sub("[./]", "_", owner), len(listed) + 1
        while f"{stem}_{number}" in named:
            number += 1
        return {"id": f"{stem}_{number}", **value}

    def _remove(self, target: EditTarget) -> AppliedEdit:
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
            key = next(k for k, v in found.parent.items() if v is found.value)
            del found.parent[key]
        return AppliedEdit("REMOVE", target.label)


def _check_like(value: Document, likes: list[Document], path: str) -> None:
    known = {k: describe_kind(v) for like in likes for k, v in like.items() if v is not None}
    known |= {k: describe_kind(None) for like in likes for k, v in like.items() if k not in known}
    for field, given in value.items():
        if field in ("id", "_anchor"):
            continue
        if field not in known:
            raise EditRefusedError(
                f"what is in {path} has no field {field!r}: "
                f"it has {', '.join(sorted(known))}{suggest_similar(field, known)}"
            )
        nothing = describe_kind(None)
        if given is not None and known[field] != nothing and describe_kind(given) != known[field]:
            raise EditRefusedError(f"{field} has to be {known[field]}, not {describe_kind(given)}")


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
