"""The receipt of a turn says what it cost that models read topics, and what it changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from sessions import last_receipt, open_graph, past, record, tell, thread

from topicloom import Answer, LocalRole, Quote, Reader, Reading, ReadRequest, Receipt, Usage
from topicloom.roles.reader import EmbeddedReader
from topicloom.testing import fake_roles

CONFIG = thread()
SUMMARY = "雨下了三天，屋顶漏了。" * 3


class ScriptedReader(LocalRole[ReadRequest, tuple[Reading, ...]]):
    """Names what it is given of each topic, and sums that up."""

    model = "small"

    def __init__(self, **named: tuple[str, ...]) -> None:
        self.named = named

    def call(self, request: ReadRequest) -> Answer[tuple[Reading, ...]]:
        readings = (self._read(window.topic.id) for window in request.windows)
        return Answer(tuple(readings), Usage("small", 900, 40))

    def _read(self, topic: str) -> Reading:
        ids = self.named.get(topic, ())
        quotes = tuple(Quote(id=i, weight=0.9) for i in ids)
        summary, score = (SUMMARY, 0.9) if ids else ("", 0.1)
        return Reading(topic=topic, score=score, quotes=quotes, summary=summary)


def answer(folder: Path, reader: Reader) -> Receipt:
    """The receipt of a turn about the rain, after talk about tea and rain."""
    roles = fake_roles(reader=reader)
    graph = open_graph(folder, roles, recall_tokens=400, window=3_000)
    record(graph, CONFIG, *past("茶", "雨", rounds=8))
    tell(graph, CONFIG, "雨：第2次说到雨的事情", keep=0)
    return last_receipt(folder, graph, CONFIG)


def list_quotes(receipt: Receipt) -> set[str]:
    return {i for note in receipt.quoted for i in note.quotes}


@pytest.mark.slow
def test_it_says_what_was_added_kept_out_and_summed_up(tmp_path: Path) -> None:
    alone = answer(tmp_path / "alone", EmbeddedReader())
    assert (alone.reading, alone.reading_tokens) == (None, 0)
    found = list_quotes(alone)
    missed = next(f"m{n}" for n in range(1, 16) if f"m{n}" not in found)
    read = answer(tmp_path / "read", ScriptedReader(t1=(missed,)))
    assert read.reading is not None
    assert read.reading.added == (missed,)
    assert set(read.reading.kept_out) == found - list_quotes(read)
    assert read.reading.kept_out
    assert read.reading.summaries == 1
    readers = sum(call.role == "reader" for call in read.calls)
    assert readers > 0
    assert read.reading_tokens == 940 * readers


@pytest.mark.slow
def test_readers_that_change_nothing_are_named_too(tmp_path: Path) -> None:
    read = answer(tmp_path, ScriptedReader())
    assert read.reading is not None
    assert (read.reading.added, read.reading.summaries) == ((), 0)
    assert read.reading_tokens > 0
