"""Flat paths into the document, and what they may mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from topicloom.domain.document import DocumentNode, get_anchor, get_label

_SHOWN = 12
"""Names that an error lists at most."""


class EditRefusedError(Exception):
    """Why an edit cannot be made; never leaves the edits."""


@dataclass(frozen=True, slots=True)
class EditTarget:
    """What a path means."""

    path: str
    """The path as given."""
    place: DocumentNode
    """The object."""
    field: str | None = None
    """Its field; None for the object itself."""

    @property
    def label(self) -> str:
        """What people call the object; empty for the document itself."""
        return (get_label(self.place.value) or self.place.anchor) if self.place.anchor else ""

    @property
    def stem(self) -> str:
        """What the ids of new things in it begin with."""
        return (self.place.anchor or self.field or "item").replace(".", "_").replace("/", "_")

    def field_to_change(self) -> tuple[dict[str, Any], str]:
        """The object and its field, which may be a new one.

        Raises:
            Refusal: If the path names no field, or one that never changes.
        """
        if self.field is None:
            fields = list_fields(self.place.value)
            raise EditRefusedError(f"{self.path} is a whole thing: name a field of it, of {fields}")
        if self.field in ("id", "_anchor"):
            raise EditRefusedError(f"{self.path} never changes: it is what the thing is named by")
        return self.place.value, self.field

    def list_to_grow(self) -> list[Any]:
        """The list that something is pushed to: the field's, or the only one of the object.

        Raises:
            Refusal: If there is none, or more than one.
        """
        value = self.place.value
        lists = [k for k, v in value.items() if isinstance(v, list)]
        if self.field is not None:
            found = value.get(self.field)
        else:
            name = "items" if "items" in lists else lists[0] if len(lists) == 1 else None
            found = value[name] if name else None
        if isinstance(found, list):
            return found
        known = f": the lists are {', '.join(lists[:_SHOWN])}" if lists else ""
        raise EditRefusedError(f"{self.path} is no list{known}")

    def list_label(self) -> str:
        """What people call the list that something is pushed to."""
        return self.label or self.field or ""

    def place_and_siblings(self) -> list[Mapping[str, Any]]:
        """The object, and those that stand in one list with it."""
        around = self.place.parent
        others = around if isinstance(around, list) else ()
        return [self.place.value, *(v for v in others if isinstance(v, dict))]


def resolve_path(places: Mapping[str, DocumentNode], path: str, *, new: bool = False) -> EditTarget:
    """What a path means.

    Args:
        places: The document's, by anchor; the document itself by "".
        path: An anchor, `anchor.field`, or a field of the document itself.
        new: Whether the document may get a field that it has not.

    Raises:
        Refusal: If it means nothing, or goes deeper than one field.
    """
    if path in places and path:
        return EditTarget(path, places[path])
    anchor, dot, field = path.rpartition(".")
    if dot and anchor in places and anchor and field:
        return EditTarget(path, places[anchor], field)
    if dot and ("." in anchor or "[" in path):
        raise EditRefusedError(
            f"{path[:80]!r} goes too deep: name the innermost thing by its own anchor, "
            f"then one field, such as anchor.field{suggest_similar(anchor, places)}"
        )
    if new and not dot and path not in places[""].value:
        return EditTarget(path, places[""], path)
    if dot or path not in places[""].value:
        names = [*places, *places[""].value]
        raise EditRefusedError(
            f"there is nothing with the anchor {(anchor or path)[:80]!r}"
            f"{suggest_similar(anchor or path, names)}"
        )
    value = places[""].value[path]
    inner = get_anchor(value) if isinstance(value, dict) else None
    if inner is not None:
        raise EditRefusedError(f"{path} has an anchor of its own: call it {inner}")
    return EditTarget(path, places[""], path)


def suggest_similar(name: str, names: Iterable[str]) -> str:
    """The end of a sentence that says what else may have been meant; "" if nothing is near."""
    known = {n.lower(): n for n in names if n}
    close = get_close_matches(name[:80].lower(), list(known), n=3)
    within = [n for low, n in known.items() if name and name.lower() in low][:3]
    meant = list(dict.fromkeys([*(known[c] for c in close), *within]))
    return f". Did you mean {' or '.join(meant[:3])}?" if meant else ""


def list_fields(value: Mapping[str, Any]) -> str:
    """The fields of an object, for an error."""
    names = [k for k in value if k not in ("id", "_anchor")]
    more = ", ..." if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) or "no field") + more


def describe_kind(value: object) -> str:
    """The kind of a JSON value, in words."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "null"
