"""Which thing of the document a few words mean, and which field of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topicloom.domain.document import Document, DocumentNode, get_label, index_nodes
from topicloom.domain.paths import EditRefusedError, EditTarget, resolve_path

_LATIN = re.compile(r"[a-z0-9_/-]+")
_FILLERS = frozenset(
    """
    the a an of my our your his her its their this that s for in on to value field task item
    quest event order entry thing list 清单 列表 的 这个 那个 任务 物品 事件 订单
    """.split()
)
_POSSESSIVE = re.compile(r"['’]s?\b")


@dataclass(frozen=True, slots=True)
class _NameMatch:
    """A thing that words may mean."""

    place: DocumentNode
    rest: str
    """The words that do not name it."""
    strength: int
    """Characters of its name that were said; whole names go before parts of names."""


class ObjectResolver:
    """The things of one document, by what people call them."""

    def __init__(self, document: Document, fields: Sequence[frozenset[str]]) -> None:
        """Args:
        document: The application's document.
        fields: Words that mean the same field, a group each.
        """
        self._places = index_nodes(document)
        self._fields = fields
        self._names = [(place, _list_names(place)) for place in self._places.values()]

    def resolve(self, said: str) -> EditTarget | None:
        """The thing, or the field of a thing, that words mean; None if that is not certain.

        Every word has to be used: what is left over may change the meaning.
        """
        plain = _simplify(said)
        if not plain:
            return None
        try:
            return resolve_path(self._places, said.strip())
        except EditRefusedError:
            pass
        found = self._of_one_place(plain)
        for matches in (self._named(plain), self._named_in_part(plain)):
            targets = [(m.strength, t) for m in matches if (t := self._target(m)) is not None]
            best = max((strength for strength, _ in targets), default=0)
            found += [t for strength, t in targets if strength == best]
            if found:
                break
        return found[0] if len(found) == 1 else None

    def values(self, field: str) -> list[Any]:
        """The values of all fields of that name in the document."""
        return [p.value[field] for p in self._places.values() if field in p.value]

    def find_mentioned(self, text: str) -> list[DocumentNode]:
        """Things whose whole names are in a text, those with longer names first."""
        matches = sorted(self._named(_simplify(text)), key=lambda m: -m.strength)
        return [m.place for m in matches]

    def _of_one_place(self, plain: str) -> list[EditTarget]:
        """A field that only one object has, of those that there is one of."""
        found = [
            EditTarget(f"{place.anchor}.{field}" if place.anchor else field, place, field)
            for place in self._places.values()
            if not isinstance(place.parent, list)
            and (field := find_field(place.value, plain, self._fields)) is not None
            and not isinstance(place.value[field], dict)  # that has an anchor of its own
        ]
        return found if len(found) == 1 else []

    def _named(self, plain: str) -> list[_NameMatch]:
        """Things whose anchor or label is in the words."""
        found = []
        for place, names in self._names:
            said = [n for n in names if _contains_name(n, plain)]
            if said:
                longest = max(said, key=len)
                found.append(_NameMatch(place, _remove_name(plain, longest), len(longest)))
        return found

    def _named_in_part(self, plain: str) -> list[_NameMatch]:
        """Things that have some of the words in their labels."""
        words = _LATIN.findall(plain)
        found = []
        for place in self._places.values():
            own = set(_LATIN.findall(get_label(place.value).lower())) - _FILLERS
            shared = [w for w in words if w in own]
            if shared:
                rest = " ".join(w for w in words if w not in own)
                found.append(_NameMatch(place, rest, sum(map(len, shared))))
        return found

    def _target(self, match: _NameMatch) -> EditTarget | None:
        rest = _simplify(match.rest)
        if not rest:
            return EditTarget(match.place.anchor, match.place)
        likes = EditTarget("", match.place).place_and_siblings()
        field = find_field({k: v for like in likes for k, v in like.items()}, rest, self._fields)
        if field is None or not match.place.anchor:
            return None
        return EditTarget(f"{match.place.anchor}.{field}", match.place, field)


def find_field(owner: Mapping[str, Any], said: str, groups: Sequence[frozenset[str]]) -> str | None:
    """The field that a word means, by its own name or one that means the same; None if unclear."""
    known = [k for k in owner if k not in ("id", "_anchor")]
    exact = [k for k in known if fold(k) == fold(said)]
    if exact:
        return exact[0] if len(exact) == 1 else None
    alike = {fold(w) for g in groups if fold(said) in map(fold, g) for w in g}
    found = [k for k in known if fold(k) in alike]
    return found[0] if len(found) == 1 else None


def fold(word: str) -> str:
    """A word in lower case, without what stands between its parts."""
    return re.sub(r"[\s_-]+", "", word.lower())


def find_word(said: str, words: Iterable[str], groups: Sequence[frozenset[str]]) -> str | None:
    """The one of some words that is said, or that means the same; None if there is none."""
    listed = list(words)
    exact = next((w for w in listed if fold(w) == fold(said)), None)
    if exact is not None:
        return exact
    alike = {fold(w) for g in groups if fold(said) in map(fold, g) for w in g}
    return next((w for w in listed if fold(w) in alike), None)


def _simplify(said: str) -> str:
    """Words in lower case without quotes, possessives and those that name nothing."""
    text = _POSSESSIVE.sub(" ", said.lower())
    text = re.sub(r"[\"“”‘’「」《》,，:：]+", " ", text)
    text = text.strip("的 ")
    return " ".join(w for w in text.split() if w not in _FILLERS)


def _list_names(place: DocumentNode) -> set[str]:
    """The names of a thing, as plain words; a single character is no name."""
    names = (place.anchor, get_label(place.value), place.key)
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
    """True if two characters are parts of one Latin word."""
    return bool(left and right) and bool(_LATIN.fullmatch(left) and _LATIN.fullmatch(right))


def _remove_name(text: str, name: str) -> str:
    return text.replace(name, " ", 1).strip("的 ")
