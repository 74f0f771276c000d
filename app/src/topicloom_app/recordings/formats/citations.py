"""Marks of citations in replies, resolved to links or removed.

ChatGPT puts them between characters of a private range (U+E200 begins, U+E202 parts, U+E201 ends),
older replies between 【 and 】; DeepSeek writes `[citation:3]`. None of them says anything to a
reader without the list of sources beside the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_BEGIN, _END, _PART = "\ue200", "\ue201", "\ue202"
_MARK = re.compile(r" ?\ue200([^\ue200\ue201]*)\ue201")
_STRAY = re.compile("[\ue200-\ue206]")
_OLD = re.compile(r" ?【\d{1,4}(?::\d{1,4})?†[^【】\n]{0,200}】")
_NUMBERED = re.compile(r" ?\[citation:(\d{1,4})\]")


def resolve_marks(text: str, metadata: Mapping[str, Any]) -> str:
    """A text of ChatGPT's with links where it cites something, by the metadata of its message."""
    if not (_BEGIN in text or "【" in text):
        return text
    text = _resolve_old(text, metadata.get("citations"))
    for reference in metadata.get("content_references") or ():
        if not isinstance(reference, dict):
            continue
        mark = reference.get("matched_text")
        if isinstance(mark, str) and (_BEGIN in mark or "【" in mark) and mark in text:
            text = text.replace(mark, _write_reference(reference) or mark)
    text = _MARK.sub(_name_mark, text)
    return _STRAY.sub("", _OLD.sub("", text))


def resolve_numbers(text: str, sources: Iterable[Any]) -> str:
    """A text of DeepSeek's with links where it cites a result of a search, by its number."""
    links = dict[int, str]()
    for number, source in enumerate(sources, 1):
        if isinstance(source, dict):
            index = source.get("cite_index")
            at = index if isinstance(index, int) else number
            links[at] = _write_link(source.get("title"), source.get("url"))

    def write(match: re.Match[str]) -> str:
        link = links.get(int(match[1]), "")
        return f" ({link})" if link else ""

    return _NUMBERED.sub(write, text)


def _resolve_old(text: str, citations: object) -> str:
    if not isinstance(citations, list):
        return text
    found = list[tuple[int, int, str]]()
    for citation in citations:
        data = citation if isinstance(citation, dict) else {}
        start, end, source = data.get("start_ix"), data.get("end_ix"), data.get("metadata")
        if isinstance(start, int) and isinstance(end, int) and isinstance(source, dict):
            found.append((start, end, _write_link(source.get("title"), source.get("url"))))
    for start, end, link in sorted(found, reverse=True):
        if 0 <= start < end <= len(text) and text[start] == "【" and link:
            text = f"{text[:start]}({link}){text[end:]}"
    return text


def _write_reference(reference: Mapping[str, Any]) -> str:
    alt = reference.get("alt")
    if isinstance(alt, str) and alt.strip():
        return alt
    items = reference.get("items")
    found = items if isinstance(items, list) else [reference]
    links = [
        _write_link(item.get("title"), item.get("url")) for item in found if isinstance(item, dict)
    ]
    said = ", ".join(filter(None, links))
    return f"({said})" if said else ""


def _write_link(title: object, url: object) -> str:
    named = " ".join(title.split()) if isinstance(title, str) else ""
    if isinstance(url, str) and url:
        return f"[{named or url}]({url})"
    return named


def _name_mark(match: re.Match[str]) -> str:
    """What a mark without a reference says: the name of a thing, words of a link, or nothing."""
    space = " " if match[0].startswith(" ") else ""
    kind, *parts = match[1].split(_PART)
    if kind == "entity" and parts:
        try:
            said = json.loads(parts[0])
        except (ValueError, RecursionError):
            return ""
        names = [part for part in said if isinstance(part, str)] if isinstance(said, list) else []
        return space + names[min(1, len(names) - 1)] if names else ""
    return space + parts[0] if kind == "url" and len(parts) > 1 else ""
