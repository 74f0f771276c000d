"""The document as YAML, every object with its anchor: the same data gives the same bytes.

PyYAML writes neither the comments by which lists are addressed nor JSON within YAML, and is slow.
Keys are sorted, the anchor first, so that a store which reorders keys changes nothing. Flat objects
stand in one line each, as JSON, which is YAML too. Texts are always quoted, and `<` is escaped in
them, so that no text of the document can close the element around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from json import JSONEncoder
from typing import Any

from topicloom.domain.document import NESTED, get_anchor

_PLAIN = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[^\W\d][\w-]*", re.I)
"""Keys that need no quotes in any version of YAML."""
_UNSAFE = re.compile(r"[<\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that would end an element, or that YAML takes for line breaks or does not read."""
_FIRST = ("_anchor", "id")
_json = JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode


def format_yaml(value: object, anchors: Mapping[int, str]) -> str:
    """JSON-native data as YAML; `anchors` are those of objects without one, by `id()`."""
    writer = _YamlWriter(anchors)
    if isinstance(value, dict) and value:
        writer.write_mapping(value, "")
    elif isinstance(value, list) and any(isinstance(v, dict | list) for v in value):
        writer.write_sequence(value, "")
    else:
        writer.lines.append(_json(value))
    return _UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04x}", "\n".join(writer.lines))


@dataclass(slots=True)
class _YamlWriter:
    anchors: Mapping[int, str]
    lines: list[str] = field(default_factory=list)

    def write_mapping(self, value: dict[str, Any], indent: str) -> None:
        ordered = self._sort_entries(value)
        anchor = get_anchor(ordered)
        for key, inner in ordered.items():
            head = f"{indent}{key if _PLAIN.fullmatch(key) else _json(key)}:"
            if _is_flat(inner):
                self.lines.append(f"{head} {_json(self._sort_entries(inner))}")
            elif isinstance(inner, dict):
                self.lines.append(head)
                self.write_mapping(inner, indent + "  ")
            else:
                # A list is addressed by its key at the top, else as a field.
                path = key if anchor is None else f"{anchor}.{key}"
                self.lines.append(f"{head} # {_json(path)[1:-1]}")
                self.write_sequence(inner, indent + "  ")

    def write_sequence(self, values: list[Any], indent: str) -> None:
        for value in values:
            first = len(self.lines)
            if _is_flat(value):
                self.lines.append(f"{indent}- {_json(self._sort_entries(value))}")
            elif isinstance(value, dict):
                self.write_mapping(value, indent + "  ")
                self.lines[first] = f"{indent}- {self.lines[first][len(indent) + 2 :]}"
            else:
                self.lines.append(f"{indent}-")
                self.write_sequence(value, indent + "  ")

    def _sort_entries(self, value: Any) -> Any:
        """An object with its anchor first, then by key; any other value as it is."""
        if type(value) is not dict:
            return value
        anchor = self.anchors.get(id(value))
        entries = {key: value[key] for key in _sort_keys(tuple(value))}
        return entries if anchor is None else {"_anchor": anchor, **entries}


@lru_cache(maxsize=4_096)
def _sort_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Keys in the order in which they are written; things of one kind have the same."""
    return tuple(sorted(keys, key=lambda k: (_FIRST.index(k) if k in _FIRST else len(_FIRST), k)))


def _is_flat(value: object) -> bool:
    """True if a value takes one line: a single value, or an object or list of such."""
    if type(value) is dict:
        inner: Iterable[object] = value.values()
        return NESTED.isdisjoint(map(type, inner)) or all(
            type(v) is not dict and (type(v) is not list or _is_flat(v)) for v in inner
        )
    return type(value) is not list or NESTED.isdisjoint(map(type, value))
