"""Objects and fields of the document, by the flat paths of edits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any

from topicloom.domain.document import DocumentNode, get_anchor, get_label

_SHOWN = 12
"""Fields and lists that an error names."""

_KINDS: tuple[tuple[type | UnionType, str], ...] = (
    (bool, "true or false"),  # before numbers, of which it is one
    (int | float, "a number"),
    (str, "a text"),
    (list, "a list"),
    (dict, "an object"),
)


class EditRefusedError(Exception):
    """An edit cannot be made: any look-up for one raises it. Caught in `apply_edits`."""


@dataclass(frozen=True, slots=True)
class EditTarget:
    """The object, or field of an object, that a path names."""

    path: str
    node: DocumentNode
    field: str | None = None
    """None for the object itself."""

    @property
    def label(self) -> str:
        """The name that people give the object; empty for the document itself."""
        return (get_label(self.node.value) or self.node.anchor) if self.node.anchor else ""

    def require_field(self) -> tuple[dict[str, Any], str]:
        """The object and its field, which may be a new one."""
        if self.field is None:
            fields = list_fields(self.node.value)
            raise EditRefusedError(f"{self.path} is a whole thing: name a field of it, of {fields}")
        if self.field in ("id", "_anchor"):
            raise EditRefusedError(f"{self.path} never changes: it is what the thing is named by")
        return self.node.value, self.field

    def require_list(self) -> list[Any]:
        """The list that something is pushed to: the field's, or the only one of the object."""
        value = self.node.value
        lists = [k for k, v in value.items() if isinstance(v, list)]
        only = "items" if "items" in lists else lists[0] if len(lists) == 1 else ""
        found = value.get(only if self.field is None else self.field)
        if isinstance(found, list):
            return found
        known = f": the lists are {', '.join(lists[:_SHOWN])}" if lists else ""
        raise EditRefusedError(f"{self.path} is no list{known}")

    def list_siblings(self) -> list[Mapping[str, Any]]:
        """The object, and those that stand in one list with it."""
        around = self.node.parent
        others = around if isinstance(around, list) else ()
        return [self.node.value, *(v for v in others if isinstance(v, dict))]


def resolve_path(nodes: Mapping[str, DocumentNode], path: str, *, new: bool = False) -> EditTarget:
    """The target that a path names: an anchor, `anchor.field`, or a field of the document itself.

    With `new`, the document itself may get a new field.

    Raises:
        EditRefusedError: If it means nothing, or goes deeper than one field.
    """
    if path and path in nodes:
        return EditTarget(path, nodes[path])
    anchor, dot, field = path.rpartition(".")
    if anchor and field and anchor in nodes:
        return EditTarget(path, nodes[anchor], field)
    if dot and ("." in anchor or "[" in path):
        raise EditRefusedError(
            f"{path[:80]!r} goes too deep: name the innermost thing by its own anchor, "
            f"then one field, such as anchor.field{suggest_similar(anchor, nodes)}"
        )
    document = nodes[""]
    if dot or not (new or path in document.value):
        name = anchor or path
        similar = suggest_similar(name, [*nodes, *document.value])
        raise EditRefusedError(f"there is nothing with the anchor {name[:80]!r}{similar}")
    value = document.value.get(path)
    inner = get_anchor(value) if isinstance(value, dict) else None
    if inner is not None:
        raise EditRefusedError(f"{path} has an anchor of its own: call it {inner}")
    return EditTarget(path, document, path)


def suggest_similar(name: str, names: Iterable[str]) -> str:
    """The question "Did you mean ...?" as the end of an error; "" if nothing is near."""
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
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "null")
