"""Every field of every sample missing, null or of another type: nothing fails, nothing is lost.

That is: what is not imported any more is named in the report, as left out or not understood.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from topicloom_app.recordings.exports import read_exports

SAMPLES = Path(__file__).parent / "samples"
FILES = [p for p in sorted(SAMPLES.rglob("*")) if p.suffix in (".json", ".jsonl", ".txt", ".html")]
MISSING = object()
VALUES: list[Any] = [
    MISSING,
    None,
    True,
    7,
    -1.5e300,
    "text",
    "",
    [],
    ["a", 1, None],
    {},
    {"a": {}},
]


def list_places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all fields and items in a value."""
    items = value.items() if isinstance(value, dict) else []
    for key, inner in enumerate(value) if isinstance(value, list) else items:
        yield (*place, key)
        yield from list_places(inner, (*place, key))


def change(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    *way, last = place
    inner = changed
    for key in way:
        inner = inner[key]
    if new is MISSING:
        del inner[last]
    else:
        inner[last] = new
    return changed


def damage(path: Path) -> Iterator[tuple[object, str]]:
    """The texts of a file with one thing changed, each with what that is."""
    text = path.read_text("utf-8")
    if path.suffix in (".txt", ".html"):
        parts = re.split("(\n)" if path.suffix == ".txt" else "(<[^>]*>)", text)
        for n, part in enumerate(parts[::2]):
            for new in ("", part[: len(part) // 2], part[::-1], part + part, "7"):
                yield (n, new), "".join([*parts[: 2 * n], new, *parts[2 * n + 1 :]])
        return
    lines = path.suffix == ".jsonl"
    whole = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    for place in list_places(whole):
        for new in VALUES:
            changed = change(whole, place, new)
            written = [json.dumps(row) for row in changed] if lines else [json.dumps(changed)]
            yield (place, new), "\n".join(written)


def read(path: Path) -> tuple[set[str], Counter[str]]:
    """The texts that are imported, and what the report says of others."""
    found = list(read_exports([path]))
    texts = {str(message.content) for c in found for message in c.messages}
    return texts, sum((c.skipped + c.unread.counts for c in found), Counter[str]())


@pytest.mark.long
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_a_damaged_export_is_read_or_reported(path: Path, tmp_path: Path) -> None:
    """A text that still stands in the file is imported, or the report has one thing more."""
    other = tmp_path / path.name
    texts, said = read(path)
    silent = []
    for what, text in damage(path):
        other.write_text(text, "utf-8")
        left, reported = read(other)
        kept = "\n".join(left)
        lost = {t for t in texts if t not in kept and json.dumps(t)[1:-1] in text}
        if lost and len(left) < len(texts) and not reported - said:
            silent.append((what, lost))
    assert not silent
