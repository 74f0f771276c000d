"""Measuring topic boundaries: the files, the measures and the run."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tables import each_row

from topicloom import NotAConversationError, default_embedder
from topicloom.lab import Utterance, load_boundary_model
from topicloom_lab.segmentation import (
    DEPENDENT,
    SegmentedDialogue,
    boundaries,
    closing_labels,
    evaluate_segmentation,
    load_dialogues,
    measure,
    summarize,
)


def given(segments: list[int], **more: Any) -> dict[str, Any]:
    roles = ("user", "agent")
    utterances = [{"role": roles[n % 2], "text": f"text {n}"} for n in range(sum(segments))]
    return {"id": "d", "utterances": utterances, "segments": segments} | more


def dialogue(segments: list[int], **more: Any) -> SegmentedDialogue:
    return SegmentedDialogue.model_validate(given(segments, **more))


class TestLoading:
    def test_segments_say_where_topics_begin(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text(f"{json.dumps(given([2, 1, 3]))}\n\n")
        (found,) = load_dialogues(path)
        assert found.begins.tolist() == [True, False, True, True, False, False]

    def test_packed_files_are_read(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl.xz"
        path.write_bytes(lzma.compress(json.dumps(given([1])).encode()))
        assert len(load_dialogues(path)) == 1

    @each_row(
        ("role", "expected"),
        [
            ("user", Utterance("user", None, "x")),
            ("agent", Utterance("assistant", None, "x")),
            ("A", Utterance(None, "A", "x")),
            (None, Utterance(None, None, "x")),
        ],
    )
    def test_a_role_is_a_role_or_names_a_speaker(
        self, role: str | None, expected: Utterance
    ) -> None:
        utterances = [{"role": role, "text": "x"}]
        assert dialogue([1], utterances=utterances).said == [expected]

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("no json", "Invalid JSON"),
            (json.dumps(given([2]) | {"segments": [3]}), "do not cover 2 utterances"),
            (json.dumps(given([2]) | {"segments": [3, -1]}), "do not cover"),
            ('{"id": "a", "segments": [1]}', "utterances: Field required"),
        ],
    )
    def test_a_bad_line_is_named(self, tmp_path: Path, line: str, problem: str) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text(f"{json.dumps(given([1]))}\n{line}\n")
        with pytest.raises(NotAConversationError, match=rf"a\.jsonl, line 2 .*{problem}"):
            load_dialogues(path)

    @pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\xff"])
    def test_a_file_that_cannot_be_used_is_named(
        self, tmp_path: Path, content: bytes | None
    ) -> None:
        path = tmp_path / "a.jsonl"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(NotAConversationError, match=r"a\.jsonl"):
            load_dialogues(path)


def test_a_boundary_stands_from_the_threshold_on() -> None:
    assert boundaries(np.array([1.0, 0.3, 0.2]), 0.3).tolist() == [True, True, False]


class TestMeasures:
    def test_the_truth_is_perfect(self) -> None:
        given = dialogue([4, 4, 4])
        found = measure([given], [given.begins])
        assert (found.pk, found.window_diff, found.f1, found.score) == (0, 0, 1, 1)
        assert found.ratio == 1

    def test_silence_has_no_f1(self) -> None:
        given = dialogue([4, 4, 4])
        found = measure([given], [np.zeros(12, dtype=np.bool_)])
        assert (found.f1, found.ratio) == (0, 0)
        # Windows of 2: 3 of 11 pairs hold one of the two boundaries each.
        assert 0 < found.pk <= 0.5
        assert found.score == pytest.approx((2 - found.pk - found.window_diff) / 4)

    def test_the_mean_is_over_dialogues_of_any_length(self) -> None:
        short, long = dialogue([2, 2]), dialogue([6, 6, 6])
        alone = [
            measure([d], [b])
            for d, b in ((short, short.begins), (long, np.zeros(18, dtype=np.bool_)))
        ]
        both = measure([short, long], [short.begins, np.zeros(18, dtype=np.bool_)])
        assert both.f1 == pytest.approx((alone[0].f1 + alone[1].f1) / 2)
        assert both.pk == pytest.approx((alone[0].pk + alone[1].pk) / 2)
        assert both.ratio == pytest.approx(1 / 3)

    def test_one_topic_without_boundaries(self) -> None:
        found = measure([dialogue([1])], [np.array([True])])
        assert (found.pk, found.f1, found.ratio) == (0, 0, float("inf"))

    def test_the_final_utterance_closes_nothing(self) -> None:
        assert closing_labels(np.array([True, False, True])) == [0, 1, 0]

    def test_false_splits_of_dependent_dialogues_are_counted_apart(self) -> None:
        plain, dependent = dialogue([2, 2]), dialogue([3, 1], type=f"{DEPENDENT}+x")
        begins = [plain.begins, np.array([True, True, False, True])]
        found = summarize([plain, dependent], begins)
        assert found.dependent is not None
        assert found.dependent.dialogues == 1
        assert found.false_splits == 1
        assert found.as_json()["dependent"]["false_splits"] == 1
        assert summarize([plain], begins[:1]).dependent is None


class TestRun:
    def test_rows_and_summary(self, tmp_path: Path) -> None:
        done: list[int] = []
        rows, summary = evaluate_segmentation(
            [dialogue([2, 2]), dialogue([3])],
            load_boundary_model(),
            default_embedder(),
            mode="retrospective",
            progress=done.append,
        )
        assert done == [1, 2]
        assert [len(row["boundaries"]) for row in rows] == [4, 3]
        assert all(row["boundaries"][-1] == 0 for row in rows)
        assert summary.all.dialogues == 2
        assert "dependent" not in summary.as_json()

        assert rows[0] == {"id": "d", "boundaries": list(rows[0]["boundaries"])}
