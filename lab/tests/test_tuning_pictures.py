"""The pictures of a turn log: every one is drawn, whatever topics are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from turn_logs import Day, log_of

from topicloom import ActivationPolicy, Receipt, StorageUnavailableError, TopicNote
from topicloom_lab.tuning.pictures import (
    draw_all,
    draw_lanes,
    draw_scores,
    drawable,
    label,
    stretches,
)

POLICY = ActivationPolicy()
UNASSIGNED = "\U000ffff0"
"""A character that no font has."""


def some(turns: int = 12) -> list[Receipt]:
    """A log before and after its first split."""
    later = [Day({"t1": 0.9, "t2": 0.3}, split=("t1", "t2") if not n else ()) for n in range(turns)]
    return log_of([Day({}), *later])


def named(receipts: list[Receipt], name: str) -> list[Receipt]:
    """The log with t1 called so."""
    notes = (TopicNote(topic="t1", name=name, score=0.9, quotes=("m1",)),)
    return [r.model_copy(update={"quoted": notes}) if r.scores else r for r in receipts]


@pytest.mark.slow
def test_all_pictures_are_written(tmp_path: Path) -> None:
    paths = draw_all(some(), POLICY, tmp_path / "new" / "folder", ("png", "svg"))
    assert [p.name for p in paths] == [
        f"{name}.{kind}" for name in ("scores", "topics", "prompt") for kind in ("png", "svg")
    ]
    for path in paths:
        beginning = path.read_bytes()[:60]
        assert beginning.startswith(b"\x89PNG" if path.suffix == ".png" else b"<?xml")


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(StorageUnavailableError, match="pictures cannot be written"):
        draw_all(some(), POLICY, tmp_path / "file", ("png",))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["", "Kitchen", "厨房装修", f"{UNASSIGNED}", "costs $5 to $9", "a\nb", "x" * 300, "🌊"]
)
def test_topics_of_any_name_are_drawn(tmp_path: Path, name: str) -> None:
    # Warnings are errors here: a character without a picture would be one.
    assert draw_all(named(some(), name), POLICY, tmp_path, ("png",))


def test_a_name_that_cannot_be_drawn_gives_way_to_the_id() -> None:
    assert label("t1", "Kitchen") == "t1 Kitchen"
    assert label("t1", f"Kitchen {UNASSIGNED}") == "t1"
    assert label("t1", "") == label("t1", "t1") == "t1"
    assert label("t1", "a very long name of a topic") == "t1 a very long name of a…"
    assert drawable("Küche")
    assert not drawable(UNASSIGNED)


def test_one_turn_is_enough() -> None:
    receipts = log_of([Day({"t1": 0.9}, split=("t1",))])
    assert draw_scores(receipts, POLICY).axes
    assert draw_lanes(receipts, POLICY).axes


def test_only_so_many_lanes() -> None:
    topics = [f"t{n}" for n in range(1, 61)]
    days = [
        Day({topic: 0.9}, split=(topic,))
        for topic in topics
        for _ in range(2)  # the topic is active in two turns at least
    ]
    figure = draw_lanes(log_of(days), POLICY)
    assert len(figure.axes[0].get_yticklabels()) == 36
    assert "24 that were active for less long are left out" in figure.texts[1].get_text()


def test_runs_of_turns() -> None:
    assert stretches([1, 2, 3, 7, 9, 10]) == [(1, 3), (7, 1), (9, 2)]
    assert stretches([]) == []
