"""`topicloom import` as people use it: several files, previews, sessions of each, branches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, assert_one_line, read_rows
from importing import save
from vendor_exports import MIXED, chatgpt, node

from topicloom_app.recordings.formats.known import FORMATS

SAMPLES = Path(__file__).parents[1] / "recordings" / "samples"


def exported(run: Run, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("export", name, "--to", "jsonl").out.splitlines()]


def part(number: int, time: float, title: str = "") -> dict[str, Any]:
    """A conversation of one round."""
    nodes = [
        node(f"q{number}", "root", "user", f"茶{number}", time=time),
        node(f"a{number}", f"q{number}", "assistant", f"好{number}", time=time + 1),
    ]
    return chatgpt(*nodes, id=f"c{number}", title=title or f"Part {number}")


@pytest.mark.slow
def test_a_folder_several_files_and_one_by_one(run: Run, tmp_path: Path) -> None:
    """Parts come newest first. However they are imported, an export is in the order of time."""
    folder = tmp_path / "unzipped"
    folder.mkdir()
    files = [
        str(save(folder / f"conversations-00{n}.json", [part(n, 1_760_000_000 - n * 80_000_000)]))
        for n in (0, 1)
    ]
    assert "4 messages recorded" in run("import", "chatgpt", str(folder), "--session", "a").out
    assert "4 messages recorded" in run("import", *files, "--session", "b").out
    for file in files:
        run("import", "chatgpt", file, "--session", "c")
    for name in "abc":
        assert [row["text"] for row in exported(run, name)] == ["茶1", "好1", "茶0", "好0"]


@pytest.mark.slow
def test_a_round_trip_is_exact_whatever_the_order(run: Run, tmp_path: Path) -> None:
    for number in (0, 1):
        file = str(save(tmp_path / "c.json", [part(number, 2e9 - number * 1e9)]))
        run("import", file, "--session", "one")
    (tmp_path / "one.jsonl").write_text(run("export", "one", "--to", "jsonl").out, "utf-8")
    run("import", str(tmp_path / "one.jsonl"), "--session", "other")
    one, other = exported(run, "one"), exported(run, "other")
    kept = ("id", "seq", "role", "text", "time", "source")
    assert [[row[k] for k in kept] for row in one] == [[row[k] for k in kept] for row in other]
    assert [row["seq"] for row in one] == [3, 4, 1, 2]


@pytest.mark.slow
def test_a_round_trip_keeps_what_belongs_together(run: Run, tmp_path: Path) -> None:
    """Chats that were imported, what was said after them, and chats of many subjects."""
    chats = [part(n, 1e9 + n) for n in range(3)]
    run("import", str(save(tmp_path / "c.json", chats)), "--session", "one")
    run("chat", "one", stdin="茶：现在说的\n")
    run("import", str(SAMPLES / "telegram-account"), "--session", "one")
    run("import", str(save(tmp_path / "c.json", [part(9, 2e9)])), "--session", "one")
    lines = run("transcript", "one", "--json").out
    file = tmp_path / "one.jsonl"
    for text in (lines, run("export", "one", "--to", "jsonl").out):
        file.write_text(text, "utf-8")
        name = f"other{len(read_rows(run, 'sessions'))}"
        assert run("import", str(file), "--session", name).code == 0
        assert run("transcript", name, "--json").out == lines
        rows = read_rows(run, "transcript", name)
        assert {row["chat"] for row in rows if "chat" in row} == {"q0", "q1", "q2", "q9"}
        assert sum(row.get("begins", False) for row in rows) == 5
        assert "nothing is wrong" in run("check", name).out
    assert "0 messages recorded" in run("import", str(file), "--session", "one").out


def test_a_preview_records_nothing(run: Run, tmp_path: Path) -> None:
    file = str(save(tmp_path / "c.json", [MIXED, part(7, 2e9, "Tea in Kyoto")]))
    outcome = run("import", file, "--session", "all", "--dry-run")
    for line in (
        "2 conversations: 6 messages would be recorded in session all",
        "read as chatgpt (2), by the content",
        "titles: About c1, Tea in Kyoto",
        "from 2023-11-14 to 2033-05-18",
        "left out: reasoning (1)",
    ):
        assert line in outcome.out
    assert "no sessions" in run("sessions").out
    run("import", file, "--session", "all")
    again = run("import", file, "--session", "all", "--dry-run")
    assert "0 messages would be recorded in session all" in again.out
    assert "6 were there already" in again.out
    (row,) = read_rows(run, "import", file, "--each", "--dry-run")
    assert row["sessions"] == ["About c1", "Tea in Kyoto"]
    assert [row["name"] for row in read_rows(run, "sessions")] == ["all"]


@pytest.mark.slow
def test_each_is_named_by_its_title_and_found_again(run: Run, tmp_path: Path) -> None:
    titles = ["Tea: green / black?", "红烧肉的做法", "tea green black", "..", "New chat"]
    chats = [part(n, 1e9 + n, title) for n, title in enumerate(titles)]
    file = str(save(tmp_path / "c.json", chats))
    (row,) = read_rows(run, "import", file, "--each")
    names = ["Tea green black", "红烧肉的做法", "tea green black 2", "chatgpt-c3", "chatgpt-c4"]
    assert row["sessions"] == names
    for n, chat in enumerate(chats):  # the title has changed since, and there is one more
        chat["title"] = f"Another {n}"
    save(tmp_path / "c.json", [*chats, part(9, 2e9, "Tea green black")])
    (row,) = read_rows(run, "import", file, "--each")
    assert row["sessions"] == [*names, "Tea green black 3"]
    assert (row["recorded"], row["there_already"]) == (2, 10)
    assert len(exported(run, "红烧肉的做法")) == 2


def test_each_does_not_go_into_a_session_of_several(run: Run, tmp_path: Path) -> None:
    file = str(save(tmp_path / "c.json", [part(1, 1e9), part(2, 2e9)]))
    run("import", file, "--session", "all")
    (row,) = read_rows(run, "import", file, "--each")
    assert row["sessions"] == ["Part 1", "Part 2"]


@pytest.mark.slow
def test_branches_become_conversations_of_their_own_if_asked_for(run: Run, tmp_path: Path) -> None:
    file = str(SAMPLES / "claude.json")
    shown = ["The rent is 900 euros.", "Here it is:", "And with heating?", "A sum of 1000."]
    run("import", file, "--session", "shown")
    assert [row["text"].split("\n")[0] for row in exported(run, "shown")] == shown
    outcome = run("import", file, "--session", "all", "--branches")
    assert "2 conversations: 6 messages recorded" in outcome.out
    names = [row["name"] for row in read_rows(run, "topics", "all")]
    assert sorted(names) == ["Rent", "Rent (branch 2)"]
    again = run("import", file, "--session", "all", "--branches")
    assert "0 messages recorded" in again.out


def test_another_vendors_file_is_taken_for_what_it_is(run: Run) -> None:
    outcome = run("import", "chatgpt", str(SAMPLES / "deepseek.json"), "--session", "s")
    assert "read as deepseek (1), by the content" in outcome.out
    assert [row["text"].split("\n")[0] for row in exported(run, "s")] == [
        "What do I feed the cat?",
        "Tuna ([Cats](https://example.org/cats)).",
    ]


@pytest.mark.slow
def test_a_session_of_all_samples_is_in_order(run: Run) -> None:
    """Everything is in a topic, and a second import finds nothing new."""
    (first,) = read_rows(run, "import", str(SAMPLES), "--session", "s")
    (again,) = read_rows(run, "import", str(SAMPLES), "--session", "s")
    assert set(first["formats"]) == set(FORMATS)
    assert (again["recorded"], again["there_already"]) == (
        0,
        first["recorded"] + first["there_already"],
    )
    assert "nothing is wrong" in run("check", "s").out
    rows, topics = read_rows(run, "transcript", "s"), read_rows(run, "topics", "s")
    assert len(rows) == sum(topic["count"] for topic in topics) == first["recorded"]
    titles = {"Boiler", "Rent", "Cat", "Tomatoes", "Bicycle", "Saddle", "Lisbon in May"}
    assert titles <= {topic["name"] for topic in topics}


def test_the_format_alone_is_no_file(run: Run) -> None:
    assert_one_line(run("import", "chatgpt", "--session", "s"), "name the export too")


def test_what_an_import_found_is_said_in_chinese(run: Run, tmp_path: Path) -> None:
    said = [{"role": "user", "content": "茶", "time": "soon"}, {"role": "robot", "content": "x"}]
    file = str(save(tmp_path / "m.json", said))
    out = run("--language", "zh", "import", file, "--session", "s").out
    for line in (
        "按内容识别为 openai (1)",
        "看不懂：读不懂的时间（1 处），第一处：",
        "没有任何时间、按今天记的有 1 条",
        "形式不同的消息（1 处）",
    ):
        assert line in out


@pytest.mark.slow
def test_facts_of_a_conversation_of_several_people_are_of_whom_i_say_i_am(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "_chat.txt").write_text(
        "[15/05/2026, 10:04:00] Otto: I live in Rome.\n"
        "[15/05/2026, 10:05:00] Ann: I live in Leeds.\n"
        "[15/05/2026, 10:06:00] Otto: Well.\n",
        "utf-8",
    )
    file = str(tmp_path / "_chat.txt")
    assert "say who you are with --me NAME" in run("import", file, "--session", "nobody").out
    assert "--me" not in run("import", file, "--session", "ann", "--me", "Ann").out
    for name in ("nobody", "ann"):
        run("reflect", name, "--force")
    assert read_rows(run, "facts", "nobody") == []
    (fact,) = read_rows(run, "facts", "ann")
    assert (fact["fact"], fact["origin"]) == ("Ann: I live in Leeds.", "whatsapp")


def test_days_and_hours_are_those_of_a_time_zone(run: Run, tmp_path: Path) -> None:
    """An evening in New York, and the next day in UTC."""
    path = str(save(tmp_path / "c.json", [part(1, 1_768_534_200)]))
    run("import", path, "--session", "a", "--timezone", "America/New_York")
    assert exported(run, "a")[0]["time"] == "2026-01-15T22:30:00-05:00"
    failed = run("import", path, "--session", "a", "--timezone", "Paris")
    assert_one_line(failed, "'Paris'", "Europe/Paris")


def test_a_user_is_somewhere_in_all_sessions_that_do_not_say_it(run: Run, tmp_path: Path) -> None:
    path = str(save(tmp_path / "c.json", [part(1, 1_768_534_200)]))
    assert "America/New_York" in run("person", "ann", "--timezone", "America/New_York").out
    run("import", path, "--session", "a", "--user", "ann")
    assert exported(run, "a")[0]["time"] == "2026-01-15T22:30:00-05:00"
    assert_one_line(run("person", "ann", "--timezone", "Paris"), "'Paris'", "Europe/Paris")


def test_days_that_tell_too_little(run: Run, tmp_path: Path) -> None:
    """The report says which option tells the rest."""
    path = tmp_path / "chat.txt"
    path.write_text("03/04/2026, 21:15 - Eva: The key\n", "utf-8")
    failed = run("import", str(path), "--session", "a")
    assert failed.code == 2
    assert "--day-first or --month-first" in failed.err
    run("import", str(path), "--session", "a", "--day-first")
    assert exported(run, "a")[0]["time"].startswith("2026-04-03T21:15")
