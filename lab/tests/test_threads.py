"""Measuring topics of interleaved conversations: the files, the measures and the run."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path
from typing import Any

import pytest
from tables import each_row

from topicloom import NotAConversationError
from topicloom_app.recordings.replay import as_message
from topicloom_app.recordings.times import parse_moment
from topicloom_lab.talk import said
from topicloom_lab.thread_scores import summarize_scores, thread_scores
from topicloom_lab.threads import ThreadedConversation, evaluate_threads, load_threads

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
            assert [said.speaker for said in read.recorded()] == ["anna", None]

    def test_a_line_that_is_none_is_named(self, tmp_path: Path) -> None:
        good = json.dumps(conversation(message("hi", 1)))
        (tmp_path / "a.jsonl").write_text(f'{good}\n{{"id": "b"}}\n', encoding="utf-8")
        with pytest.raises(NotAConversationError, match=r"a\.jsonl, line 2 is no .*messages"):
            list(load_threads(tmp_path / "a.jsonl"))

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(NotAConversationError, match=r"none\.jsonl cannot be read"):
            list(load_threads(tmp_path / "none.jsonl"))

    def test_roles_are_no_names(self) -> None:
        given = conversation(message("a", 1, speaker="user"), message("b", 1, speaker="bob"))
        heard = ThreadedConversation.model_validate(given).recorded()
        assert [as_message(s).name for s in heard] == [None, "bob"]

    def test_only_an_assistant_is_no_user(self) -> None:
        given = conversation(message("a", 1, speaker="assistant"), message("b", 1, speaker="bob"))
        heard = ThreadedConversation.model_validate(given).recorded()
        assert [s.role for s in heard] == ["assistant", "user"]

    def test_a_deed_is_said_by_who_does_it_and_joining_is_a_notice(self) -> None:
        texts = [
            "=== anna checks the cables",
            "=== anna [~anna@example.org]  has joined #channel",
            "=== anna has left #channel",
            "=== anna is now known as anna_",
        ]
        lines = (message(text, 1, speaker=None, system=True) for text in texts)
        heard = ThreadedConversation.model_validate(conversation(*lines)).recorded()
        assert [s.speaker for s in heard] == ["anna", None, None, None]

    @each_row(
        ("times", "gaps"),
        [
            (["23:30", None, "00:15"], 0.75),
            ([7200.0, None, 9000], 0.5),
            (["2026-03-01T10:00:00", None, "2026-03-01T12:00:00"], 2.0),
        ],
    )
    def test_times_are_hours(self, times: list[Any], gaps: float) -> None:
        given = conversation(*(message("a", 1, time=time) for time in times))
        heard = ThreadedConversation.model_validate(given).recorded()
        first, unknown, last = (parse_moment(s.time) for s in heard)
        assert unknown is None
        assert first is not None
        assert last is not None
        assert (last - first).total_seconds() == pytest.approx(3600 * gaps)


class TestMeasures:
    def test_the_same_topics_under_other_names_are_best(self) -> None:
        found = thread_scores(["a", "b", "a", "c"], [5, 0, 5, 1])
        assert (found.ari, found.one_to_one, found.vi, found.exact) == (1, 1, 1, 1)

    def test_scores_of_threads_agree_with_those_made_by_hand(self) -> None:
        found = thread_scores(["a", "a", "b", "b"], [0, 0, 0, 1])
        # Pairs: 1 right of 2 known and 3 told, 1 expected; (1 - 1) / (2.5 - 1).
        assert found.ari == pytest.approx(0)
        assert found.one_to_one == pytest.approx(0.75)
        # H(gold) = 1, H(told) = .811, I = .311 bits: VI = 1.189 of log2 4.
        assert found.vi == pytest.approx(1 - 1.1887 / 2, abs=1e-3)
        assert found.exact == 0

    def test_one_topic_found_exactly(self) -> None:
        assert thread_scores(list("aabbc"), [0, 0, 1, 2, 2]).exact == pytest.approx(0.5)

    def test_what_is_in_no_topic_is_a_topic_of_its_own(self) -> None:
        alone = thread_scores(list("aabb"), [None, None, "t1", "t1"])
        assert alone == thread_scores(list("aabb"), ["x", "y", "t1", "t1"])
        assert alone != thread_scores(list("aabb"), ["x", "x", "t1", "t1"])

    def test_nothing_to_find_and_nothing_told(self) -> None:
        assert thread_scores(list("abc"), [0, 1, 2]).exact == 1

    def test_summary_is_over_judged_conversations(self) -> None:
        scores = [thread_scores("aa", [0, 0]), None]
        assert summarize_scores(scores)["ari"] == 1
        assert summarize_scores(scores)["conversations"] == 1
        assert summarize_scores([])["ari"] == 0


class TestRun:
    def test_rows_have_a_segment_and_a_topic_for_each_message(self) -> None:
        given = conversation(
            message("tea?", None), message(" ", 1), message("a red car", 1), message("tea", 2)
        )
        (row,) = evaluate_threads([ThreadedConversation.model_validate(given)])
        told = json.loads(json.dumps(row.as_json()))
        assert [len(told["segments"]), len(told["threads"])] == [4, 4]
        assert told["segments"] == sorted(told["segments"])
        assert told["threads"][0] == told["threads"][1]
        assert row.as_they_come is not None
        assert row.moved is not None
        assert row.moved.messages == 3

    @pytest.mark.slow
    def test_what_comes_back_is_moved_to_its_topic(self) -> None:
        texts = [
            ("How long does green tea steep, and how hot should the water for the tea be?", 0),
            ("Is green tea steeped shorter than black tea, and is its water cooler?", 0),
            ("The chain of my bicycle slips off the gears whenever I pedal uphill.", 1),
            ("Should I oil the bicycle chain, or are the gears of the bicycle worn?", 1),
            ("The bicycle chain slips off the worn gears again, even with oil.", 1),
            ("My tomatoes need watering and compost, when do I plant the seeds?", 2),
            ("The garden soil is dry, do the tomatoes want compost or watering?", 2),
            ("Compost and watering made the tomatoes in the garden soil grow.", 2),
            ("And what if green tea steeps too long in hot water, is the tea bitter?", 0),
            ("So which tea steeps longest in the hottest water?", 0),
        ]
        given = conversation(*(message(text, thread) for text, thread in texts))
        (row,) = evaluate_threads([ThreadedConversation.model_validate(given)])
        assert row.as_they_come is not None
        assert row.moved is not None
        assert (len(set(row.segments)), len(set(row.topics))) == (4, 3)
        assert row.came[:8] == row.topics[:8]  # what was new is the topic that was made of it
        assert row.moved.ari > row.as_they_come.ari

    @pytest.mark.slow
    def test_what_comes_back_is_in_its_topic_as_it_comes(self) -> None:
        tea = "Does green tea steep shorter than black tea, in cooler water, {}?"
        chain = "The bicycle chain slips off the worn gears of the bicycle, uphill, {}."
        texts = [(tea, 0), (chain, 1), (tea, 0), (chain, 1)]
        said_of = [(text.format(f"{n} times"), k) for text, k in texts for n in range(30)]
        given = conversation(*(message(*pair) for pair in said_of))
        (row,) = evaluate_threads([ThreadedConversation.model_validate(given)], window=1_000)
        assert len(set(row.segments)) > 2
        assert len(set(row.topics)) == 2
        again = slice(65, None)
        assert row.came[again] == row.topics[again]

    @pytest.mark.slow
    def test_a_small_window_is_split_on_the_way_and_loses_nothing(self) -> None:
        texts = [f"{said(n // 4, 400)} ({n})" for n in range(24)]
        given = conversation(*(message(t, n // 4) for n, t in enumerate(texts)))
        (row,) = evaluate_threads([ThreadedConversation.model_validate(given)], window=1_000)
        assert len(row.topics) == 24
        assert all(row.topics)

    def test_nothing_to_judge(self) -> None:
        (row,) = evaluate_threads(
            [ThreadedConversation.model_validate(conversation(message("a", 1)))]
        )
        assert (row.as_they_come, row.moved) == (None, None)

    @pytest.mark.slow
    def test_open_data_are_judged(self) -> None:
        path = DATA / "threads" / "interleaved_zh_dev.jsonl"
        if not path.exists():
            pytest.skip(f"no data at {path}; set TOPICLOOM_DATA")
        first = next(load_threads(path))
        (row,) = evaluate_threads([first])
        assert len(row.topics) == len(first.messages)
        assert row.moved is not None
        assert row.moved.ari > 0.1
