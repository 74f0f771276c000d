"""Whatever texts an export has, reading it takes time that grows with their length."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sieve import find_fast_growth
from tables import each_row

from topicloom_app.recordings.exported import clean_title
from topicloom_app.recordings.formats.activity_page import read_activity_page, to_text
from topicloom_app.recordings.formats.base import Source
from topicloom_app.recordings.formats.citations import resolve_marks, resolve_numbers
from topicloom_app.recordings.formats.known import FORMATS, find_format, holds_conversation
from topicloom_app.recordings.json_stream import Entry, read_entries
from topicloom_app.recordings.times import read_time

SAMPLES = [p for p in sorted((Path(__file__).parent / "samples").iterdir()) if p.is_file()]
READ: dict[str, list[Any]] = {
    path.name: [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    if path.suffix == ".jsonl"
    else json.loads(path.read_text("utf-8"))
    for path in SAMPLES
    if path.suffix in (".json", ".jsonl")
}
"""The samples that are JSON."""
TIMES = ("2026-01-31, 10:00 - ", "[31.01.26, 10:00:00] ")


def put(value: Any, text: str) -> Any:
    """A value in which a text stands in the place of all that somebody wrote."""
    if isinstance(value, dict):
        return {key: put(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [put(inner, text) for inner in value]
    return text if isinstance(value, str) and " " in value else value


def fill(value: Any) -> Callable[[str], object]:
    """Reads a sample with other texts in it."""
    entries = value if isinstance(value, list) else [value]
    known = find_format(entries[0]) or FORMATS["openai"]
    wanted = Source("a", branches=True)
    return lambda text: list(
        known.read((Entry(put(entry, text), "entry") for entry in entries), wanted)
    )


def read_chat_lines(text: str) -> object:
    lines = f"{TIMES[0]}Ann: {text}\n{TIMES[1]}Ben: {text}\n".splitlines(keepends=True)
    return list(FORMATS["whatsapp"].read((Entry(line, "line") for line in lines), Source("a")))


@pytest.mark.slow
@each_row("name", READ)
def test_reading_time_of_a_format_grows_with_its_size(name: str) -> None:
    assert list(find_fast_growth(fill(READ[name]))) == []


SAYS = {"citations": [{"metadata": {"title": "a b", "url": "c"}}], "content_references": []}
PARTS: Mapping[str, Callable[[str], object]] = {
    "whatsapp": read_chat_lines,
    "a page of HTML": lambda t: list(read_activity_page(io.StringIO(f"<div>{t}</div>{t}"))),
    "to_text": lambda t: to_text(f"<p>{t}</p>{t}"),
    "read_entries": lambda t: list(read_entries(io.StringIO(t), holds_conversation)),
    "a JSON text": lambda t: list(
        read_entries(io.StringIO(json.dumps([{"text": t}] * 3)), holds_conversation)
    ),
    "an object": lambda t: list(read_entries(io.StringIO(f'{{"a": [1, {t}'), holds_conversation)),
    "resolve_marks": lambda t: resolve_marks(t, SAYS),
    "resolve_numbers": lambda t: resolve_numbers(t, [{"url": "c", "title": t}]),
    "clean_title": clean_title,
    "read_time": read_time,
}
"""What reads texts of exports as they come."""


@pytest.mark.slow
@each_row("name", PARTS)
def test_what_reads_a_text_of_an_export(name: str) -> None:
    assert list(find_fast_growth(PARTS[name])) == []
