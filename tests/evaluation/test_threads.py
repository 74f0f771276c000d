"""Measuring topics of interleaved conversations: the files, the measures and the run."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path
from typing import Any

import pytest

from topicloom.errors import NotAConversationError
from topicloom.evaluation.threads import (
    ThreadedConversation,
    ThreadRow,
    evaluate_threads,
    load_threads,
    summary,
    thread_scores,
    topics_of,
)
from topicloom.index.encoders import default_embedder
from topicloom.perception.rejoin import Placement, Rejoiner

DATA = Path(os.environ.get("TOPICLOOM_DATA", Path(__file__).parents[3] / "shared" / "data"))


def message(text: str, thread: Any, **more: Any) -> dict[str, Any]:
    """A message of a threads file."""
    return {"id": "0", "time": None, "speaker": "anna", "text": text, "thread": thread, **more}


def conversation(*messages: dict[str, Any]) -> dict[str, Any]:
    """A line of a threads file."""
    return {"id": "c", "lang": "en", "messages": list(messages)}


class TestLoading:
    def test_plain_and_packed(self, tmp_path: Path) -> None:
        line = json.dumps(
            conversation(message("hi", 3), message("x", None, system=True, speaker=None))
        )
        (tmp_path / "a.jsonl").write_text(f"{line}\n\n", encoding="utf-8")
        (tmp_path / "a.jsonl.xz").write_bytes(lzma.compress(line.encode()))
        for name in ("a.jsonl", "a.jsonl.xz"):
            (read,) = load_threads(tmp_path / name)
            assert [m.thread for m in read.messages] == ["3", None]
            assert [said.role for said in read.said()] == [None, "system"]

    def test_a_line_that_is_none_is_named(self, tmp_path: Path) -> None:
        good = json.dumps(conversation(message("hi", 1)))
        (tmp_path / "a.jsonl").write_text(f'{good}\n{{"id": "b"}}\n', encoding="utf-8")
        with pytest.raises(NotAConversationError, match=r"a\.jsonl, line 2: .*messages"):
            list(load_threads(tmp_path / "a.jsonl"))

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(NotAConversationError, match=r"none\.jsonl cannot be read"):
            list(load_threads(tmp_path / "none.jsonl"))

    def test_roles_are_no_names(self) -> None:
        given = conversation(message("a", 1, speaker="user"), message("b", 1, speaker="bob"))
        said = ThreadedConversation.model_validate(given).said()
        assert [(s.role, s.speaker) for s in said] == [("user", None), (None, "bob")]

    def test_a_deed_is_said_by_who_does_it_and_joining_is_a_notice(self) -> None:
        texts = [
            "=== anna checks the cables",
            "=== anna [~anna@example.org]  has joined #channel",
            "=== anna has left #channel",
            "=== anna is now known as anna_",
        ]
        lines = (message(text, 1, speaker=None, system=True) for text in texts)
        said = ThreadedConversation.model_validate(conversation(*lines)).said()
        assert [(s.role, s.speaker) for s in said] == [(None, "anna"), *[("system", None)] * 3]

    @pytest.mark.parametrize(
        ("times", "gaps"),
        [
            (["23:30", None, "00:15"], 0.75),
            ([7200.0, None, 9000], 0.5),
            (["2026-03-01T10:00:00", None, "2026-03-01T12:00:00"], 2.0),
        ],
    )
    def test_times_are_hours(self, times: list[Any], gaps: float) -> None:
        given = conversation(*(message("a", 1, time=time) for time in times))
        first, unknown, last = (s.hours for s in ThreadedConversation.model_validate(given).said())
        assert unknown is None
        assert first is not None
        assert last is not None
        assert last - first == pytest.approx(gaps)


class TestMeasures:
    def test_the_same_topics_under_other_names_are_best(self) -> None:
        found = thread_scores(["a", "b", "a", "c"], [5, 0, 5, 1])
        assert (found.ari, found.one_to_one, found.vi, found.exact) == (1, 1, 1, 1)

    def test_by_hand(self) -> None:
        found = thread_scores(["a", "a", "b", "b"], [0, 0, 0, 1])
        # Pairs: 1 right of 2 known and 3 told, 1 expected; (1 - 1) / (2.5 - 1).
        assert found.ari == pytest.approx(0)
        assert found.one_to_one == pytest.approx(0.75)
        # H(gold) = 1, H(told) = .811, I = .311 bits: VI = 1.189 of log2 4.
        assert found.vi == pytest.approx(1 - 1.1887 / 2, abs=1e-3)
        assert found.exact == 0

    def test_one_topic_found_exactly(self) -> None:
        assert thread_scores(list("aabbc"), [0, 0, 1, 2, 2]).exact == pytest.approx(0.5)

    def test_nothing_to_find_and_nothing_told(self) -> None:
        assert thread_scores(list("abc"), [0, 1, 2]).exact == 1

    def test_a_block_counts_to_its_last_topic(self) -> None:
        placed = [Placement(0, 0, 1), Placement(1, 1, 1), Placement(0, 1, 1)]
        assert topics_of(placed, "message") == [0, 1, 0]
        assert topics_of(placed, "block") == [0, 0, 0]

    def test_summary_is_over_judged_conversations(self) -> None:
        rows = [
            ThreadRow("a", (0, 0), thread_scores("aa", [0, 0])),
            ThreadRow("b", (0, 1), None),
        ]
        assert summary(rows)["ari"] == 1
        assert summary(rows)["conversations"] == 1
        assert summary([])["ari"] == 0


class TestRun:
    def test_rows_have_a_number_for_each_message(self) -> None:
        given = conversation(message("tea?", None), message("a red car", 1), message("tea", 2))
        lines: list[str] = []
        (row,) = evaluate_threads(
            [ThreadedConversation.model_validate(given)],
            rejoiner=Rejoiner.load(),
            embedder=default_embedder(),
            report=lines.append,
        )
        assert len(json.loads(row.line())["threads"]) == 3
        assert row.scores is not None
        assert row.scores.messages == 2
        assert lines[0].startswith("c: ARI")

    def test_open_data(self) -> None:
        path = DATA / "threads" / "irc_dev.jsonl"
        if not path.exists():
            pytest.skip(f"no data at {path}; set TOPICLOOM_DATA")
        first = next(load_threads(path))
        (row,) = evaluate_threads([first], rejoiner=Rejoiner.load(), embedder=default_embedder())
        assert len(row.threads) == len(first.messages)
        assert row.scores is not None
        assert row.scores.ari > 0.3
