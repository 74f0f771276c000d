"""Objects and fields of the document, as people call them: "the sword's count", "灯笼的数量"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from topicloom.domain.document import Document, DocumentNode, get_label, index_nodes
from topicloom.domain.targets import EditRefusedError, EditTarget, resolve_path
from topicloom.prompts.loader import load_words

_LATIN = re.compile(r"[a-z0-9_/-]+")
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
        found = self._find_unique_fields(plain)
        for matches in (self._match_names(plain), self._match_words(plain)):
            made = [(size, self._make_target(node, rest)) for size, node, rest in matches]
            targets = [(size, target) for size, target in made if target is not None]
            best = max((size for size, _ in targets), default=0)
            found += [target for size, target in targets if size == best]
            if found:
                break
        return found[0] if len(found) == 1 else None

    def list_values(self, field: str) -> list[Any]:
        """The values of all fields of that name in the document."""
        return [node.value[field] for node in self._nodes.values() if field in node.value]

    def find_mentioned(self, text: str) -> list[DocumentNode]:
        """Objects whose whole names are in a text, those with longer names first."""
        matches = sorted(self._match_names(_simplify(text)), key=lambda match: -match[0])
        return [node for _, node, _ in matches]

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
        """Objects whose names are said: the length of the name, the object, the other words."""
        spaced = _space(plain)
        for node, names in self._names:
            longest = max((n for n in names if n in spaced), key=len, default="")
            if longest:
                yield len(longest), node, spaced.replace(longest, " ", 1)

    def _match_words(self, plain: str) -> Iterator[tuple[int, DocumentNode, str]]:
        """The same for objects of whose names only some words are said."""
        words = _LATIN.findall(plain)
        for node in self._nodes.values():
            own = set(_LATIN.findall(get_label(node.value).lower())) - _FILLERS
            if shared := [word for word in words if word in own]:
                yield sum(map(len, shared)), node, " ".join(w for w in words if w not in own)

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


def _space(plain: str) -> str:
    """Words with spaces around those in Latin letters: no name is found within one of these."""
    return _LATIN.sub(r" \g<0> ", plain)


def _list_names(node: DocumentNode) -> set[str]:
    """The names of an object, as plain words; a single character is no name."""
    names = (node.anchor, get_label(node.value), node.key)
    plain = (_simplify(n if " " in n else n.replace("_", " ")) or n.lower() for n in names)
    return {_space(name) for name in plain if len(name) > 1}
