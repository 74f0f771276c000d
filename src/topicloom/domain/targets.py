"""Objects and fields of the document that edits name, by flat paths or in people's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any

from topicloom.domain.document import Document, DocumentNode, get_anchor, get_label, index_nodes
from topicloom.prompts.loader import load_words

_LATIN = re.compile(r"[a-z0-9_/-]+")
_FILLERS = load_words("object_fillers")
_POSSESSIVE = re.compile(r"['’]s?\b")
_SHOWN = 12


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
    if path in nodes and path:
        return EditTarget(path, nodes[path])
    anchor, dot, field = path.rpartition(".")
    if dot and anchor in nodes and anchor and field:
        return EditTarget(path, nodes[anchor], field)
    if dot and ("." in anchor or "[" in path):
        raise EditRefusedError(
            f"{path[:80]!r} goes too deep: name the innermost thing by its own anchor, "
            f"then one field, such as anchor.field{suggest_similar(anchor, nodes)}"
        )
    if new and not dot and path not in nodes[""].value:
        return EditTarget(path, nodes[""], path)
    if dot or path not in nodes[""].value:
        names = [*nodes, *nodes[""].value]
        raise EditRefusedError(
            f"there is nothing with the anchor {(anchor or path)[:80]!r}"
            f"{suggest_similar(anchor or path, names)}"
        )
    value = nodes[""].value[path]
    inner = get_anchor(value) if isinstance(value, dict) else None
    if inner is not None:
        raise EditRefusedError(f"{path} has an anchor of its own: call it {inner}")
    return EditTarget(path, nodes[""], path)


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


@dataclass(frozen=True, slots=True)
class _NameMatch:
    """A thing that words may mean."""

    node: DocumentNode
    rest: str
    strength: int
    """Characters of its name that were said; whole names go before parts of names."""


class ObjectResolver:
    """The things of one document, by what people call them.

    `fields` are words that mean the same field, a group each.
    """

    def __init__(self, document: Document, fields: Sequence[frozenset[str]]) -> None:
        self._nodes = index_nodes(document)
        self._fields = fields
        self._names = [(node, _list_names(node)) for node in self._nodes.values()]

    def resolve(self, said: str) -> EditTarget | None:
        """The thing, or the field of a thing, that words mean; None if that is not certain.

        Every word has to be used: what is left over may change the meaning.
        """
        plain = _simplify(said)
        if not plain:
            return None
        try:
            return resolve_path(self._nodes, said.strip())
        except EditRefusedError:
            pass
        found = self._find_unique_fields(plain)
        for matches in (self._match_names(plain), self._match_partial_names(plain)):
            targets = [(m.strength, t) for m in matches if (t := self._make_target(m)) is not None]
            best = max((strength for strength, _ in targets), default=0)
            found += [t for strength, t in targets if strength == best]
            if found:
                break
        return found[0] if len(found) == 1 else None

    def list_values(self, field: str) -> list[Any]:
        """The values of all fields of that name in the document."""
        return [p.value[field] for p in self._nodes.values() if field in p.value]

    def find_mentioned(self, text: str) -> list[DocumentNode]:
        """Things whose whole names are in a text, those with longer names first."""
        matches = sorted(self._match_names(_simplify(text)), key=lambda m: -m.strength)
        return [m.node for m in matches]

    def _find_unique_fields(self, plain: str) -> list[EditTarget]:
        """A field that only one object has, of those that there is one of."""
        found = [
            EditTarget(f"{node.anchor}.{field}" if node.anchor else field, node, field)
            for node in self._nodes.values()
            if not isinstance(node.parent, list)
            and (field := find_field(node.value, plain, self._fields)) is not None
            and not isinstance(node.value[field], dict)  # that has an anchor of its own
        ]
        return found if len(found) == 1 else []

    def _match_names(self, plain: str) -> list[_NameMatch]:
        found = []
        for node, names in self._names:
            longest = max((n for n in names if _contains_name(n, plain)), key=len, default="")
            if longest:
                rest = plain.replace(longest, " ", 1).strip("的 ")
                found.append(_NameMatch(node, rest, len(longest)))
        return found

    def _match_partial_names(self, plain: str) -> list[_NameMatch]:
        words = _LATIN.findall(plain)
        found = []
        for node in self._nodes.values():
            own = set(_LATIN.findall(get_label(node.value).lower())) - _FILLERS
            shared = [w for w in words if w in own]
            if shared:
                rest = " ".join(w for w in words if w not in own)
                found.append(_NameMatch(node, rest, sum(map(len, shared))))
        return found

    def _make_target(self, match: _NameMatch) -> EditTarget | None:
        rest = _simplify(match.rest)
        if not rest:
            return EditTarget(match.node.anchor, match.node)
        likes = EditTarget("", match.node).list_siblings()
        field = find_field({k: v for like in likes for k, v in like.items()}, rest, self._fields)
        if field is None or not match.node.anchor:
            return None
        return EditTarget(f"{match.node.anchor}.{field}", match.node, field)


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
    text = _POSSESSIVE.sub(" ", said.lower())
    text = re.sub(r"[\"“”‘’「」《》,，:：]+", " ", text)
    text = text.strip("的 ")
    return " ".join(w for w in text.split() if w not in _FILLERS)


def _list_names(node: DocumentNode) -> set[str]:
    """The names of a thing, as plain words; a single character is no name."""
    names = (node.anchor, get_label(node.value), node.key)
    return {name for n in names if len(name := _to_plain_name(n)) > 1}


def _to_plain_name(text: str) -> str:
    words = text.replace("_", " ") if " " not in text else text
    return _simplify(words) or text.lower()


def _contains_name(name: str, text: str) -> bool:
    """True if a name stands in a text, as whole words where it is written in words."""
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 1]
        if not (_is_joined(before, name[0]) or _is_joined(name[-1], after)):
            return True
        at = text.find(name, at + 1)
    return False


def _is_joined(left: str, right: str) -> bool:
    return bool(left and right) and bool(_LATIN.fullmatch(left) and _LATIN.fullmatch(right))
