"""`topicloom eval fetch` and `convert`: public files become ours."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from command_line import Run, assert_one_line

from topicloom.recordings.conversations import load_conversations
from topicloom_lab.data_sets import DATA_SETS, DataSet

TURN = {"speaker": "Ann", "dia_id": "D1:1", "text": "I bake.", "blip_caption": "a cake"}
REPLY = {"speaker": "Ben", "dia_id": "D1:2", "text": "Lovely."}
ASKED = {"question": "What is baked?", "answer": 1, "evidence": ["D1:1; D1:2"], "category": 4}
LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1": [TURN, REPLY],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2_date_time": "never held",
    },
    "qa": [ASKED, {"question": "Who?", "adversarial_answer": "Ben", "category": 5}],
}
REALTALK = {
    "name": {"speaker_1": "Ann", "speaker_2": "Ben"},
    "session_1": [
        {**TURN, "clean_text": "I bake.", "date_time": "29.12.2023, 22:42:04"},
        {**REPLY, "clean_text": "Lovely.", "date_time": "29.12.2023, 22:43:00"},
    ],
    "qa": [ASKED],
}
QMSUM = {
    "meeting_transcripts": [{"speaker": "A", "content": "One."}, {"speaker": "B", "content": "2."}],
    "general_query_list": [],
    "specific_query_list": [
        {"query": "What?", "answer": "Two.", "relevant_text_span": [["0", "1"]]}
    ],
}


@pytest.mark.parametrize(
    ("name", "published", "id", "evidence", "said"),
    [
        ("locomo", [LOCOMO], "conv-1", ("D1:1", "D1:2"), "I bake. [shares an image: a cake]"),
        ("realtalk", REALTALK, "talk", ("D1:1", "D1:2"), "I bake. [image: a cake]"),
        ("qmsum", QMSUM, "talk", ("0", "1"), "One."),
    ],
)
def test_a_public_file_becomes_ours(
    run: Run,
    tmp_path: Path,
    name: str,
    published: Any,
    id: str,
    evidence: tuple[str, ...],
    said: str,
) -> None:
    (tmp_path / "talk.json").write_text(json.dumps(published))
    out = tmp_path / "ours.jsonl"
    outcome = run("eval", "convert", name, str(tmp_path / "talk.json"), "--out", str(out))
    assert outcome.code == 0
    assert "1 conversation, " in " ".join(outcome.out.split())
    (conversation,) = load_conversations(out)
    assert (conversation.id, conversation.messages[0].text) == (id, said)
    assert conversation.questions[0].evidence == evidence
    assert conversation.questions[0].id == f"{id}_0"


def test_where_data_sets_come_from(run: Run) -> None:
    listed = run("eval", "fetch").out
    for part in ("https://github.com/snap-research/locomo", "CC BY-NC 4.0", "eval fetch qmsum"):
        assert part in listed


def test_what_cannot_be_fetched_or_converted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = replace(DATA_SETS["locomo"], files=("http://127.0.0.1:9/locomo10.json",))
    monkeypatch.setitem(cast("dict[str, DataSet]", DATA_SETS), "locomo", nowhere)
    assert_one_line(run("eval", "fetch", "locomo", "--out", "x"), "cannot be fetched", "convert")
    assert_one_line(run("eval", "fetch", "locomoo"), "did you mean 'locomo'")
    assert_one_line(run("eval", "fetch", "beam"), "take it from https://")
    wrong = ("eval", "convert", "locomo", str(tmp_path / "talk.json"), "--out", str(tmp_path / "o"))
    for text in ("[{}]", "", "[" * 100_000):
        (tmp_path / "talk.json").write_text(text)
        assert_one_line(run(*wrong), "no file of locomo")
