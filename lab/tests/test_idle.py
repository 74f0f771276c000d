"""`topicloom eval idle`: what is recalled for a message in its place, and the figures of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, assert_one_line, read_rows
from talks import talk, talk_file

from topicloom_lab.cli.idle import AskedMessage, show_short
from topicloom_lab.idle.measure import IdleEvaluation, RecallResult
from topicloom_lab.idle.messages import WrittenMessage, place_messages
from topicloom_lab.readers import ReaderChoice

SMALL = IdleEvaluation(budget=200, window=1_500, topic_window=2_000)
WINDOWS = ("--budget", "200", "--window", "1500", "--topic-window", "2000")


def written(id: str, text: str, after: str, *evidence: str, **given: Any) -> WrittenMessage:
    row = {"id": id, "conversation": "talk", "lang": "en", "text": text, "after": after}
    row |= {"kind": "short" if evidence else "idle", "category": "return" if evidence else "thanks"}
    return WrittenMessage.model_validate(row | {"evidence": [[e] for e in evidence]} | given)


THANKS = written("thanks", "Thanks, that is all!", "a2")
EARLY = written("early", "And visit 5?", "a39", "u5")
LATE = written("late", "And that one?", "a40", "u40")
MESSAGES = (LATE, THANKS, EARLY)
TALK = talk(40)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RecallResult]:
    """What is found for all messages."""
    return measure(tmp_path_factory.mktemp("idle"), *MESSAGES)


def measure(
    folder: Path, *messages: WrittenMessage, evaluation: IdleEvaluation = SMALL
) -> dict[str, RecallResult]:
    placed = place_messages(TALK, messages, {"talk": ["u3"]})
    asked = evaluation.replay(TALK, placed, folder)
    return {p.message.id: ask() for p, ask in zip(placed, asked, strict=True)}


@pytest.mark.slow
def test_a_message_finds_what_a_session_has_in_view_and_recalls_the_rest(
    found: dict[str, RecallResult],
) -> None:
    assert list(found) == ["thanks", "u3", "early", "late"]
    assert (found["thanks"].quotes, found["thanks"].tokens) == (0, 0)
    late, early = found["late"], found["early"]
    assert (late.pieces, late.in_view, late.recalled, late.recall) == (1, 1, 0, 1.0)
    assert (early.pieces, early.in_view, early.recalled, early.recall) == (1, 0, 1, 1.0)
    assert 0 < early.evidence_tokens < early.tokens <= 250
    assert early.quotes > 1


@pytest.mark.slow
def test_one_message_of_a_piece_is_enough(tmp_path: Path) -> None:
    both = EARLY.model_copy(update={"evidence": (("u5", "a39"), ("u5",))})
    early = measure(tmp_path, both)["early"]
    assert (early.pieces, early.in_view, early.recalled) == (2, 1, 1)


@pytest.mark.slow
def test_messages_are_no_part_of_the_session(
    tmp_path: Path, found: dict[str, RecallResult]
) -> None:
    assert measure(tmp_path, LATE)["late"] == found["late"]


@pytest.mark.slow
def test_those_that_are_not_asked_change_nothing(
    tmp_path: Path, found: dict[str, RecallResult]
) -> None:
    placed = place_messages(TALK, MESSAGES, {})
    asked = list(SMALL.replay(TALK, placed, tmp_path))
    assert asked[-1]() == found["late"]


@pytest.mark.slow
def test_readers_know_the_evidence(tmp_path: Path) -> None:
    ideal = IdleEvaluation(200, 1_500, 2_000, ReaderChoice.parse("ideal"))
    early = measure(tmp_path, EARLY, evaluation=ideal)["early"]
    assert early.recalled == 1
    assert early.calls["reader"] > 0
    assert early.failed == {}


def result(**given: Any) -> RecallResult:
    row: dict[str, Any] = {"quotes": 2, "tokens": 100, "pieces": 1, "evidence_tokens": 0}
    row |= {"in_view": 0, "recalled": 0, "calls": {}, "failed": {}}
    return RecallResult(**row | given)


def test_precision_and_recall_of_what_was_not_in_view() -> None:
    asked = [
        AskedMessage(EARLY, result(pieces=2, in_view=1, recalled=1)),
        AskedMessage(LATE, result(tokens=300, evidence_tokens=40)),
        AskedMessage(LATE, result(tokens=0, in_view=1)),
    ]
    table = show_short(asked, "here")
    assert table is not None
    cells = [list(column.cells)[-1] for column in table.columns]
    assert cells == ["all", "3", "0.667", "0.500", "0.500", "133", "0.100"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A recording, and messages for it."""
    own = tmp_path / "messages.jsonl"
    own.write_text("".join(f"{m.model_dump_json()}\n" for m in MESSAGES), "utf-8")
    return talk_file(tmp_path / "talk.jsonl", TALK), own


@pytest.mark.slow
def test_the_command_goes_on_where_it_stopped(
    run: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    recording, own = files
    out = tmp_path / "rows.jsonl"
    given = ("eval", "idle", str(recording), "--messages", str(own), "--out", str(out), *WINDOWS)
    first = run(*given)
    assert (first.code, first.err) == (0, "")
    assert "messages that need nothing, 200 tokens: talk" in " ".join(first.out.split())
    assert "openings" not in first.out
    assert "packaged sample" not in first.out
    whole = out.read_text("utf-8")
    rows = [json.loads(line) for line in whole.splitlines()]
    assert [row["case"] for row in rows] == ["talk thanks", "talk early", "talk late"]
    assert {row["budget"] for row in rows} == {200}
    assert run(*given).out.strip() == first.out.strip()
    assert out.read_text("utf-8") == whole
    out.write_text(whole[: whole.index("\n") + 9], "utf-8")
    assert run(*given).out.strip() == first.out.strip()
    assert out.read_text("utf-8") == whole


@pytest.mark.slow
def test_figures_as_json(run: Run, files: tuple[Path, Path]) -> None:
    recording, own = files
    rows = read_rows(run, "eval", "idle", str(recording), "--messages", str(own), *WINDOWS)
    idle = [row for row in rows if "need nothing" in row["table"]]
    short = [row for row in rows if "short" in row["table"]]
    assert [row["kind"] for row in idle] == ["English", "thanks", "all"]
    assert (idle[-1]["messages"], idle[-1]["quotes"], idle[-1]["nothing"]) == (1, 0.0, 1.0)
    assert [row["kind"] for row in short] == ["English", "return", "all"]
    assert (short[-1]["recall"], short[-1]["in view"], short[-1]["of the rest"]) == (1.0, 0.5, 1.0)


def test_without_a_file_the_sample_alone_is_asked(run: Run, tmp_path: Path) -> None:
    own = tmp_path / "messages.jsonl"
    asked = written("hello", "早上好！", "2", conversation="lake_house", lang="zh")
    own.write_text(f"{asked.model_dump_json()}\n", "utf-8")
    shown = run("eval", "idle", "--messages", str(own), *WINDOWS)
    assert (shown.code, shown.err) == (0, "")
    assert "Chinese" in shown.out
    assert "Only the packaged sample was asked" in shown.out


def test_a_conversation_without_messages_is_named(run: Run, files: tuple[Path, Path]) -> None:
    recording, own = files
    shown = run("eval", "idle", str(recording))
    assert_one_line(shown, "no message was written for a conversation of", "--messages")
    own.write_text(f"{written('x', 'And?', 'a1', 'u9').model_dump_json()}\n", "utf-8")
    shown = run("eval", "idle", str(recording), "--messages", str(own))
    assert_one_line(shown, "'x' comes after 'a1', but its evidence 'u9' is said later")


@pytest.mark.slow
def test_a_row_of_something_else_is_named(
    run: Run, files: tuple[Path, Path], tmp_path: Path
) -> None:
    recording, own = files
    out = tmp_path / "rows.jsonl"
    row = {"case": "talk thanks", **SMALL.setup, "quotes": "many"}
    out.write_text(f"{json.dumps(row)}\n", "utf-8")
    given = ("--messages", str(own), "--out", str(out), *WINDOWS)
    shown = run("eval", "idle", str(recording), *given)
    assert_one_line(shown, "the row of 'talk thanks' is no result", "another file")
