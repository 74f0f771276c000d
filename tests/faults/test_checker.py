"""The checker itself: it sees what is wrong, and shares no reader with the package."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.checker import check, check_told
from faults.raw import Body
from faults.stages import FilesStage
from faults.talk import ROUNDS, expected, talk

from faults import checker, raw

Change = Callable[[list[Body]], list[Body]]


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> FilesStage:
    stage = FilesStage(tmp_path_factory.mktemp("checked") / "base")
    talk(stage)
    return stage


def test_it_shares_no_reader_with_the_package() -> None:
    for module in (raw, checker):
        assert "topicloom" not in vars(module)
        source = Path(str(module.__file__)).read_text("utf-8")
        assert not [line for line in source.splitlines() if "import" in line and "loom" in line]


@pytest.mark.slow
def test_it_finds_nothing_wrong_with_what_was_said(talked: FilesStage) -> None:
    found = check(talked.read())
    assert found.problems == ()
    assert check_told(found, expected(ROUNDS), expected(ROUNDS)) == []


def reworded(rows: list[Body]) -> list[Body]:
    return [{**rows[0], "text": rows[0]["text"] + "!"}, *rows[1:]]


def elsewhere_too(rows: list[Body]) -> list[Body]:
    """A message more, rightly linked: no hash says that it is wrong."""
    body = {key: value for key, value in rows[0].items() if key not in ("prev", "ref")}
    ref = checker.hash_of(rows[-1]["ref"], body)
    return [*rows, {**body, "prev": rows[-1]["ref"], "ref": ref}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("transcript.jsonl", reworded),
        ("transcript.jsonl", lambda rows: rows[1:]),
        ("ranges.jsonl", lambda rows: rows[:-1]),
        ("roster.jsonl", lambda rows: rows[:-1]),
        ("turns.jsonl", lambda rows: rows[:2] + rows[3:]),
        ("ledger.jsonl", lambda rows: []),
    ],
)
def test_it_sees_what_is_wrong(talked: FilesStage, file: str, change: Change) -> None:
    stage = talked.copy("wrong")
    path = stage.root / "s" / file
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in change(rows)]
    path.write_text("".join(lines), "utf-8", newline="")
    assert check(stage.read()).problems


@pytest.mark.slow
def test_it_sees_a_message_in_another_topic(talked: FilesStage) -> None:
    read = talked.read()
    ranges = read.chains["ranges"]
    assert read.session is not None
    head = read.session["ranges"]
    moved = {**ranges[head].body, "topic": "t9"}
    ref = checker.hash_of(head, moved)
    ranges[ref] = raw.Entry(head, moved)
    read.session["ranges"] = ref
    assert any("t9 counts 0, it has" in problem for problem in check(read).problems)


def test_it_sees_what_was_told_and_is_not_there(talked: FilesStage) -> None:
    found = check(talked.read())
    assert check_told(found, expected(ROUNDS + 1), expected(ROUNDS + 1))
    assert check_told(found, expected(ROUNDS - 1), expected(ROUNDS - 1))
    other = [("user", "something else"), *expected(ROUNDS)[1:]]
    assert check_told(found, other, other)
