"""Objects and fields of the document, as people call them: "the sword's count", "灯笼的数量"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any

from topicloom.domain.document import Document, DocumentNode, get_label, index_nodes
from topicloom.domain.targets import EditRefusedError, EditTarget, resolve_path
from topicloom.prompts.loader import load_words

_WORD = re.compile(r"[a-z0-9_/-]+|[^\sa-z0-9_/-]+")
_FILLERS = load_words("object_fillers")
_POSSESSIVE = re.compile(r"['’]s?\b")
_MARKS = re.compile(r"[\"“”‘’「」《》,，:：]+")


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
    return " ".join(word for word in text.split() if word not in _FILLERS)


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
