"""`topicloom receipt`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import Run
from rich.console import Console

from topicloom import Call, Receipt
from topicloom.state.session import ReadingEffect
from topicloom_app.cli._views import _format_failures, render_receipt
from topicloom_app.cli.words import speak_chinese


@pytest.mark.slow
def test_one_for_people_all_for_programs(run: Run, recording: Path) -> None:
    arguments = ("--session", "talk", "--no-questions", "--window", "1000")
    assert run("replay", str(recording), *arguments).code == 0
    assert run("receipt", "talk").out.count("answering m") == 1
    assert run("receipt", "talk", "-n", "3").out.count("answering m") == 3
    rows = [json.loads(line) for line in run("receipt", "talk", "--json").out.splitlines()]
    newest = run("receipt", "talk", "--json", "-n", "2").out.splitlines()
    assert [json.loads(line) for line in newest] == rows[-2:]
    assert len(rows) > 10


@pytest.mark.slow
def test_a_review_does_not_hide_the_receipt_of_the_reply(run: Run, recording: Path) -> None:
    arguments = ("--session", "talk", "--no-questions", "--window", "1000")
    assert run("replay", str(recording), *arguments).code == 0
    replied = run("receipt", "talk").out
    assert run("review", "talk").code == 0
    shown = run("receipt", "talk").out
    assert shown.startswith(replied.rstrip("\n"))
    assert "without a reply" in shown.removeprefix(replied.rstrip("\n"))


@pytest.mark.slow
def test_it_says_what_calls_cost_where_there_are_prices(
    run: Run, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("--session", "talk", "--no-questions", "--window", "1000")
    assert run("replay", str(recording), *arguments).code == 0
    assert "cost" not in run("receipt", "talk").out
    monkeypatch.setenv("TOPICLOOM_PRICES", '{"responder": [1000000, 0, 1000000]}')
    told = run("receipt", "talk").out
    (receipt,) = (
        json.loads(line) for line in run("receipt", "talk", "--json", "-n1").out.splitlines()
    )
    (call,) = (call for call in receipt["calls"] if call["role"] == "responder")
    tokens = call["input_tokens"] + call["output_tokens"]
    assert told.count(f", cost {tokens:.3g}") == 2


def test_the_same_failure_is_said_once() -> None:
    late = Call(role="reader", model="gpt", seconds=60.0, failure="no answer within 60 s")
    other = late.model_copy(update={"failure": "no score"})
    assert _format_failures([late, other, late]) == [
        "2 x reader: no answer within 60 s",
        "reader: no score",
    ]


def show(receipt: Receipt) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(render_receipt(receipt, {}, {}))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def test_it_says_what_reading_cost_and_changed_in_both_languages() -> None:
    read = Call(role="reader", model="small", input_tokens=1_200, output_tokens=34)
    replied = Call(role="responder", model="large", input_tokens=9_000)
    effect = ReadingEffect(added=("m1",), kept_out=("m3", "m5"), summaries=1)
    receipt = Receipt(
        turn=2, user="m9", started="", seconds=1, scores={}, calls=(read, replied), reading=effect
    )

    said = "1,234 tokens; quotes added: 1, kept out: 2; summaries: 1"
    assert re.search(rf"^reading +{re.escape(said)}", show(receipt), re.M)
    with speak_chinese(["topicloom_app.cli"]):
        assert "1,234 词元；增加引用 1 条，略去 2 条；摘要 1 条" in show(receipt)
    assert "reading" not in show(receipt.model_copy(update={"reading": None}))


def test_it_says_what_the_message_is_about_in_both_languages() -> None:
    likely = {"t3": 0.62, "t1": 0.1}
    receipt = Receipt(turn=2, user="m9", started="", seconds=1, scores={}, about=likely)
    assert re.search(r"^about +62% t3, 10% t1$", show(receipt), re.M)
    with speak_chinese(["topicloom_app.cli"]):
        assert re.search(r"^关于 +62% t3, 10% t1$", show(receipt), re.M)
    assert "about" not in show(receipt.model_copy(update={"about": {}}))
