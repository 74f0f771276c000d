"""Everything of one user, shown, exported and deleted: no byte of it is left, and all of others."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import Run, run
from folders import close_files, open_people
from people import People
from sessions import thread

from topicloom import FileStorage, InputError, Memory, PersonMemory
from topicloom.hosting import find_deps

__all__ = ["run"]
USER, SCOPE = "canary.user@example.org", "canary scope"
WEB, SLACK = "canary-web", "canary-slack"
NUTS, ULM, BONN = "canary nuts", "I live in canary Ulm.", "I live in canary Bonn."


@pytest.fixture
def people(tmp_path: Path) -> People:
    people = open_people(tmp_path / "sessions")
    people.learn(WEB, f"I'm allergic to {NUTS}.", user=USER)
    people.learn(WEB, ULM, "home", user=USER)
    people.say(WEB, "Something else.", user=USER, keep_messages=0)
    people.memory(WEB).archive("t1")
    people.learn(SLACK, BONN, "home", user=USER, scope=SCOPE)
    people.say(SLACK, "And now?", user=USER, scope=SCOPE)
    people.learn("of bob", "I box.", user="bob")
    people.say("of bob", "Hello?", user="bob")
    return people


def find_canaries(folder: Path) -> list[str]:
    """Files that have a canary in their names or bytes."""
    canaries = ["canary".encode(form) for form in ("utf-8", "utf-16-le", "utf-16-be")]
    found = []
    for path in folder.rglob("*"):
        # SQLite removes its journal when a thread in the background has written.
        with suppress(FileNotFoundError, IsADirectoryError):
            if "canary" in path.name or any(c in path.read_bytes() for c in canaries):
                found.append(str(path))
    return found


@pytest.mark.slow
def test_all_of_a_user_is_shown(people: People) -> None:
    person = PersonMemory(people.graph, USER)
    slack, web = person.threads()
    assert (slack.thread, slack.scope, slack.messages, slack.facts) == (SLACK, SCOPE, 4, 1)
    assert (web.thread, web.scope, web.messages, web.facts) == (WEB, "", 6, 2)
    assert web.topics
    assert {fact.text for fact in person.facts()} == {f"I'm allergic to {NUTS}.", ULM, BONN}
    assert {fact.text for fact in person.facts(at="2026-03-02")} == {f"I'm allergic to {NUTS}."}
    rows = person.export()
    kinds = [row["kind"] for row in rows]
    assert (kinds.count("thread"), kinds.count("message")) == (2, 10)
    assert any(row.get("text") == ULM for row in rows)
    assert json.dumps(rows)
    assert "box" not in json.dumps(rows)
    assert people.memory(SLACK).person().user == USER


@pytest.mark.slow
def test_nobody_is_no_user(people: People, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nobody"):
        PersonMemory(people.graph, "")
    people.say("alone", "Hello?", config=thread("alone"))
    with pytest.raises(InputError, match="no user"):
        people.memory("alone").person()
    with pytest.raises(InputError, match="only a graph"):
        Memory(FileStorage(tmp_path / "sessions"), WEB).person()


@pytest.mark.slow
def test_no_byte_is_left(people: People, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert find_canaries(people.folder)
    receipt = PersonMemory(people.graph, USER).delete()
    assert not receipt.left
    assert find_canaries(people.folder) == []
    assert not [r for r in caplog.records if "topicloom" in r.name and "canary" in r.getMessage()]
    assert "canary" not in repr(receipt)
    assert (receipt.threads, receipt.messages, receipt.facts) == (2, 10, 3)
    assert people.facts("of bob") == {"I box."}
    assert "I box." in people.say("new of bob", "Hello?", user="bob")
    assert not PersonMemory(people.graph, USER).threads()
    assert PersonMemory(people.graph, USER).delete().threads == 0
    assert "canary" not in people.say("new", "Hello?", user=USER)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(4))
def test_killed_on_the_way_the_same_call_finishes(
    people: People, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    person, calls = PersonMemory(people.graph, USER), 0
    deps = find_deps(people.graph)
    saver = people.checkpointer

    def dying(work: Callable[..., object]) -> object:
        def call(*args: object, **options: object) -> object:
            nonlocal calls
            calls += 1
            if calls == at + 1:
                raise KeyboardInterrupt
            return work(*args, **options)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(saver, "delete_thread", dying(saver.delete_thread))
        patched.setattr(deps.workspaces, "delete", dying(deps.workspaces.delete))
        with pytest.raises(KeyboardInterrupt):
            person.delete()
    person.delete()
    assert find_canaries(people.folder) == []


@pytest.mark.slow
async def test_on_the_event_loop(people: People) -> None:
    person = PersonMemory(people.graph, USER)
    assert len(await person.athreads()) == 2
    await person.adelete()
    assert find_canaries(people.folder) == []


@pytest.mark.slow
def test_the_command_shows_and_deletes_a_person(people: People, run: Run, tmp_path: Path) -> None:
    folder = str(people.folder)
    close_files(people)
    shown = run("--folder", folder, "person", USER)
    assert shown.code == 0
    assert WEB in shown.out
    assert ULM in shown.out
    assert "I box" not in shown.out
    run("--folder", folder, "person", USER, "--export", str(tmp_path / "out.jsonl"))
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert any(row.get("text") == BONN for row in rows)
    refused = run("--folder", folder, "person", USER, "--delete", "--json")
    assert json.loads(refused.out) == {"user": USER, "deleted": False}
    done = run("--folder", folder, "person", USER, "--delete", "--yes", "--json")
    assert json.loads(done.out)["receipt"]["threads"] == 2
    assert find_canaries(people.folder) == []
    assert "no session belongs to the user" in run("--folder", folder, "person", USER).out


@pytest.mark.slow
def test_what_held_on_a_day_by_command(people: People, run: Run) -> None:
    folder = str(people.folder)
    close_files(people)
    people_of = "of bob"
    assert "I box." in run("--folder", folder, "facts", people_of).out
    assert (
        "nothing is known of"
        in run("--folder", folder, "facts", people_of, "--at", "2025-01-01").out
    )
    then = run("--folder", folder, "facts", SLACK, "--at", "2026-03-03", "--json").out
    assert ULM in then
    assert BONN not in then
    now = run("--folder", folder, "facts", SLACK, "--json").out
    assert BONN in now
    assert ULM not in now
    whole = run("--folder", folder, "facts", SLACK, "--all").out
    assert "2026-03-03 – 2026-03-04" in whole
    assert "is not a day" in run("--folder", folder, "facts", SLACK, "--at", "x").err
