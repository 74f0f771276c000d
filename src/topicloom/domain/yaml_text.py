"""The document as YAML, every object with its anchor: the same data gives the same bytes.

PyYAML writes neither the comments by which lists are addressed nor JSON within YAML. Keys are
sorted, the anchor first, so that a store which reorders keys changes nothing. Flat objects stand in
one line each, as JSON, which is YAML too. Texts are always quoted, and `<` is escaped in them, so
that no text of the document can close the element around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from json import JSONEncoder
from typing import Any

from topicloom.domain.document import get_anchor

_PLAIN = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[^\W\d][\w-]*", re.I)
"""Keys that need no quotes in any version of YAML."""
_UNSAFE = re.compile(r"[<\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that would end an element, or that YAML takes for line breaks or does not read."""
_FIRST = {"_anchor": 0, "id": 1}
_json = JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode


def format_yaml(value: object, anchors: Mapping[int, str]) -> str:
    """JSON-native data as YAML; `anchors` are those of objects without one, by `id()`."""
    if isinstance(value, dict) and value:
        lines = _format_object(value, anchors)
    else:
        lines = _format_value(value, anchors)
    return _UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04x}", "\n".join(lines))


def _format_value(value: Any, anchors: Mapping[int, str]) -> Iterator[str]:
    """The lines of a value: one if it is flat."""
    if _is_flat(value):
        yield _json(_sort_entries(value, anchors))
    elif isinstance(value, dict):
        yield from _format_object(value, anchors)
    else:
        for inner in value:
            first, *others = _format_value(inner, anchors)
            yield f"- {first}"
            yield from (f"  {line}" for line in others)


def _format_object(value: dict[str, Any], anchors: Mapping[int, str]) -> Iterator[str]:
    entries = _sort_entries(value, anchors)
    anchor = get_anchor(entries)
    for key, inner in entries.items():
        head = f"{key if _PLAIN.fullmatch(key) else _json(key)}:"
        if _is_flat(inner):
            yield f"{head} {_json(_sort_entries(inner, anchors))}"
            continue
        if isinstance(inner, list):
            # It is addressed by its key at the top, else as a field.
            path = key if anchor is None else f"{anchor}.{key}"
            head = f"{head} # {_json(path)[1:-1]}"
        yield head
        yield from (f"  {line}" for line in _format_value(inner, anchors))


def _sort_entries(value: Any, anchors: Mapping[int, str]) -> Any:
    """An object with its anchor first, then by key; any other value as it is."""
    if not isinstance(value, dict):
        return value
    derived = {"_anchor": anchors[id(value)]} if id(value) in anchors else {}
    keys = sorted(value, key=lambda key: (_FIRST.get(key, 2), key))
    return derived | {key: value[key] for key in keys}


def _is_flat(value: object) -> bool:
    """True if a value takes one line: a single value, or an object or list of such."""
    if isinstance(value, dict):
        return all(not isinstance(v, dict) and _is_flat(v) for v in value.values())
    return not (isinstance(value, list) and any(isinstance(v, dict | list) for v in value))
