"""Objects and fields of the document, by the flat paths of edits and as people call them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any

from topicloom.domain.document import Document, DocumentNode, get_anchor, get_label, index_nodes
from topicloom.prompts.loader import load_words

_WORD = re.compile(r"[a-z0-9_/-]+|[^\sa-z0-9_/-]+")
_FILLERS = load_words("object_fillers")
_POSSESSIVE = re.compile(r"['’]s?\b")
_MARKS = re.compile(r"[\"“”‘’「」《》,，:：]+")
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


class ObjectNames:
    """The objects of one document by their names.

    `fields` are words that mean the same field, a group each.
    """

    def __init__(self, document: Document, fields: Sequence[frozenset[str]]) -> None:
        self._nodes = index_nodes(document)
        self._fields = fields
        self._names = [(node, _list_names(node)) for node in self._nodes.values()]

    def resolve(self, said: str) -> EditTarget | None:
        """The object, or the field of an object, that words mean; None if that is not certain.

        Every word has to be used: what is left over may change the meaning.
        """
        plain = _simplify(said)
        if not plain:
            return None
        with suppress(EditRefusedError):
            return resolve_path(self._nodes, said.strip())
        matches = self._match_names(plain)
        made = [(size, self._make_target(node, rest)) for size, node, rest in matches]
        best = max((size for size, target in made if target is not None), default=0)
        found = [target for size, target in made if target is not None and size == best]
        found += self._find_unique_fields(plain)
        return found[0] if len(found) == 1 else None

    def list_values(self, field: str) -> list[Any]:
        """The values of all fields of that name in the document."""
        return [node.value[field] for node in self._nodes.values() if field in node.value]

    def _find_unique_fields(self, plain: str) -> list[EditTarget]:
        """A field that only one object has, of objects that do not stand in a list."""
        found = [
            EditTarget(f"{node.anchor}.{field}" if node.anchor else field, node, field)
            for node in self._nodes.values()
            if not isinstance(node.parent, list)
            and (field := find_field(node.value, plain, self._fields)) is not None
            and not isinstance(node.value[field], dict)  # that has an anchor of its own
        ]
        return found if len(found) == 1 else []

    def _match_names(self, plain: str) -> Iterator[tuple[int, DocumentNode, str]]:
        """Objects of whose names any word is said: its length, the object, the other words."""
        words = _WORD.findall(plain)
        for node, names in self._names:
            rest = [_remove_names(word, names) for word in words]
            size = sum(map(len, words)) - sum(map(len, rest))
            if size:
                yield size, node, " ".join(filter(None, rest))

    def _make_target(self, node: DocumentNode, said: str) -> EditTarget | None:
        """The object, or its field that the other words name; None if they name none."""
        rest, target = _simplify(said), EditTarget(node.anchor, node)
        if not rest:
            return target
        fields = {field: None for like in target.list_siblings() for field in like}
        field = find_field(fields, rest, self._fields)
        if field is None or not node.anchor:
            return None
        return EditTarget(f"{node.anchor}.{field}", node, field)


def find_field(owner: Mapping[str, Any], said: str, groups: Sequence[frozenset[str]]) -> str | None:
    """The field that a word means, by its own name or one that means the same; None if unclear."""
    found = find_words(said, [k for k in owner if k not in ("id", "_anchor")], groups)
    return found[0] if len(found) == 1 else None


def find_words(said: str, words: Sequence[str], groups: Sequence[frozenset[str]]) -> list[str]:
    """Those of some words that are said, else those that mean the same."""
    synonyms = {fold(w) for group in groups if fold(said) in map(fold, group) for w in group}
    exact = [w for w in words if fold(w) == fold(said)]
    return exact or [w for w in words if fold(w) in synonyms]


def fold(word: str) -> str:
    """A word in lower case, without what stands between its parts."""
    return re.sub(r"[\s_-]+", "", word.lower())


def _simplify(said: str) -> str:
    """Words in lower case without quotes, possessives and those that name nothing."""
    text = _MARKS.sub(" ", _POSSESSIVE.sub(" ", said.lower())).strip("的 ")
    words = (word.strip("'") for word in text.split())
    return " ".join(word for word in words if word and word not in _FILLERS)


def _remove_names(word: str, names: Set[str]) -> str:
    """What is left of a Latin word, or of a run of others, without the names in it."""
    if word in names:
        return ""
    for name in names if not word.isascii() else ():
        word = word.replace(name, "")
    return word


def _list_names(node: DocumentNode) -> set[str]:
    """The words that name an object; a single character is no name."""
    label = set(_WORD.findall(get_label(node.value).lower().replace("_", " "))) - _FILLERS
    return {name for name in (*label, node.anchor.lower(), node.key.lower()) if len(name) > 1}
