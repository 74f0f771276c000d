"""The commands that put real prompts to a model: `eval answers`, `roles`, `arbiter`, `caching`."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, assert_one_line
from openai_behaviours import Reply, Request, Status, Usage
from openai_server import OpenAIServer
from rich.console import Console

from topicloom.lab import ROLES
from topicloom_lab.opened import Rows

pytestmark = pytest.mark.slow


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_bytes().splitlines()]


def given(server: OpenAIServer, out: Path, *command: str) -> Sequence[str]:
    return (
        "eval",
        *command,
        "--model",
        "openai:x",
        "--base-url",
        server.base_url,
        "--out",
        str(out),
    )


def test_answers_are_counted_and_not_asked_for_again(
    run: Run, openai_server: OpenAIServer, recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    openai_server.otherwise(Reply("7 km", Usage(100, 3, 40)))
    command = given(openai_server, out, "answers", str(recording), "--budget", "200")
    first = run(*command)
    assert (first.code, first.err) == (0, "")
    rows = rows_of(out)
    assert {row["way"] for row in rows} == {"topicloom", "hybrid", "last"}
    assert len(rows) == len(openai_server.requests) == 3 * len({row["question"] for row in rows})
    assert {row["reply"] for row in rows} == {"7 km"}
    assert rows[0]["calls"][0] | {"seconds": 0} == {
        "prompt": rows[0]["calls"][0]["prompt"],
        "answer": "7 km",
        "finish": "stop",
        "read": 100,
        "cached": 40,
        "written": 3,
        "seconds": 0,
    }
    assert {r["temperature"] for r in openai_server.requests} == {0.0}
    assert run(*command).out in first.out
    assert len(openai_server.requests) == len(rows)


def test_answers_come_from_a_batch_as_well(run: Run, recording: Path, tmp_path: Path) -> None:
    out, requests, replies = (tmp_path / f"{name}.jsonl" for name in ("rows", "asked", "told"))
    command = [*"eval answers --budget 200 --model openai:x".split(), str(recording)]
    command += [*"--layout time --layout topics --out".split(), str(out)]
    first = run(*command, "--requests", str(requests))
    assert first.code == 0
    assert "answers are missing" in first.out + first.err
    asked = rows_of(requests)
    assert len({row["custom_id"] for row in asked}) == len(asked)
    assert asked[0]["body"]["messages"][0]["role"] == "system"
    again = run(*command, "--requests", str(requests))
    assert again.code == 0
    assert rows_of(requests) == asked  # each once
    body = {"choices": [{"message": {"content": "7 km"}, "finish_reason": "stop"}]}
    lines = [{"custom_id": r["custom_id"], "response": {"body": body}} for r in asked]
    replies.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    second = run(*command, "--replies", str(replies))
    assert (second.code, second.err) == (0, "")
    rows = rows_of(out)
    assert {row["way"] for row in rows} == {"topicloom", "hybrid", "last", "time", "topics"}
    assert {row["reply"] for row in rows} == {"7 km"}


def test_a_file_that_holds_no_replies_is_refused(run: Run, recording: Path, tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    told.write_text("[1]\n", "utf-8")
    command = ("eval", "answers", str(recording), "--model", "openai:x", "--replies", str(told))
    assert_one_line(run(*command), "told.jsonl:1 is no reply of a batch")


def test_a_layout_that_does_not_exist_is_refused(
    run: Run, openai_server: OpenAIServer, recording: Path, tmp_path: Path
) -> None:
    command = given(openai_server, tmp_path / "rows.jsonl", "answers", str(recording))
    assert_one_line(run(*command, "--layout", "nosuch"), "there is no layout 'nosuch'")
    shown = run(*command, "--layout", "list")
    assert "one list by time" in shown.out


def test_a_request_that_fails_costs_its_row(
    run: Run, openai_server: OpenAIServer, recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    openai_server.then(Status(400, message="too long"))
    openai_server.otherwise(Reply("7 km"))
    shown = run(*given(openai_server, out, "answers", str(recording), "--budget", "200"))
    assert shown.code == 0
    first, *others = rows_of(out)
    assert "too long" in first["failure"]
    assert not any(row["failure"] for row in others)


def test_what_a_role_cannot_read_is_not_parsed(
    run: Run, openai_server: OpenAIServer, recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    openai_server.otherwise(Reply("Happy to help!"))
    command = ("roles", str(recording), "--prompts", "2", "--questions", "1")
    windows = ("--window", "2000", "--topic-window", "2000")
    shown = run(*given(openai_server, out, *command, *windows))
    assert (shown.code, shown.err) == (0, "")
    rows = rows_of(out)
    # So short a talk has one topic, so nothing is merged.
    assert {row["role"] for row in rows} == ROLES.keys() - {"responder", "arbiter", "merger"}
    assert not any(row["parsed"] for row in rows)
    assert all("UnusableAnswerError" in row["failure"] for row in rows)
    # With another number of questions, a request of the same number is another one.
    run(*given(openai_server, out, *command[:-1], "2", *windows))
    others = rows_of(out)[len(rows) :]
    assert {row["questions"] for row in others} == {2}
    assert {row["role"] for row in others} == {row["role"] for row in rows}


def test_rows_that_do_not_say_it_are_of_the_run_that_they_were_made_in(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    out.write_text('{"case": "a", "model": "x"}\n')
    for questions, found in ((20, 0), (5, 1)):
        rows = Rows(out, {"model": "x", "questions": questions}, {"questions": 20})
        (row,) = rows.complete(["a"], [lambda: {"made": 1}], Console(quiet=True), "")
        assert row.get("made", 0) == found


def test_an_arbiter_that_says_yes_merges_all_that_is_new(
    run: Run, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    openai_server.then(Reply("Perhaps."))
    openai_server.otherwise(Reply("YES"))
    shown = run(*given(openai_server, out, "arbiter"))
    assert shown.code == 0
    first, *others = rows_of(out)
    assert len(others) == 127
    assert first["continues"] is None
    assert {row["continues"] for row in others} == {1.0}
    always = [line for line in shown.out.splitlines() if "always asked" in line]
    # Of the one that it did not judge, the boundary model says what it says.
    hard, easy, both = ([int(cell) for cell in line.split("│")[2:5]] for line in always)
    assert (hard, easy, both) == ([64, 1, 32], [64, 0, 32], [128, 1, 64])
    (ranked,) = (line for line in shown.out.splitlines() if line.startswith("│ arbiter "))
    assert float(ranked.split("│")[3]) == 0.5  # all easy cases alike
    assert "nobody is asked" in run("eval", "arbiter").out


def test_a_server_counts_its_cache_beside_the_rules(
    run: Run, openai_server: OpenAIServer, recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    openai_server.otherwise(Reply("-", Usage(400, 1, 100)))
    windows = ("--window", "1000", "--topic-window", "1000", "--turns", "5")
    server = ("--server", openai_server.base_url, "--out", str(out))
    shown = run("eval", "caching", str(recording), *windows, *server)
    assert (shown.code, shown.err) == (0, "")
    (line,) = [line for line in shown.out.splitlines() if "the server" in line]
    assert "25.0%" in line
    assert "300 in" in line
    assert len(rows_of(out)) == len(openai_server.requests)
    assert {request["max_tokens"] for request in map(_sized, openai_server.requests)} == {1}


def _sized(request: Request) -> dict[str, Any]:
    body = dict(request)
    return body | {"max_tokens": body.get("max_tokens", body.get("max_completion_tokens"))}


def test_a_server_that_is_gone_ends_the_run_and_the_rest_is_asked_later(
    run: Run, openai_server: OpenAIServer, recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "rows.jsonl"
    openai_server.otherwise(Reply("7 km\u2028\u0085", Usage(100, 3, 40)))
    command = given(openai_server, out, "answers", str(recording), "--budget", "200")
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    gone = [nobody if part == openai_server.base_url else part for part in command]
    assert_one_line(run(*gone), "server cannot be reached", "refused", "--base-url")
    gone[gone.index(nobody)] = "nobody"
    assert_one_line(run(*gone), "'nobody' is no address")
    gone[gone.index("nobody")] = nobody
    assert not out.exists()
    assert run(*command).code == 0
    whole = out.read_bytes()
    out.write_bytes(whole[:-30])
    assert_one_line(run(*gone), "server cannot be reached")
    assert run(*command).code == 0
    assert len(rows_of(out)) == whole.count(b"\n")
    assert run(*gone).code == 0


@pytest.mark.parametrize("line", ["no row", '{"model": "openai:x", "budget": 200}'])
def test_a_file_of_something_else_is_named(
    run: Run, openai_server: OpenAIServer, recording: Path, tmp_path: Path, line: str
) -> None:
    out = tmp_path / "rows.jsonl"
    out.write_text(f"{line}\n")
    shown = run(*given(openai_server, out, "answers", str(recording), "--budget", "200"))
    assert_one_line(shown, "no row of results")
