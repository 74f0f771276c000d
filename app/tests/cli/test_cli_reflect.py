"""`topicloom reflect` and `topicloom facts`, reflection beside a chat, and purging facts."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from command_line import Run, assert_one_line

from topicloom import ReflectionPolicy, ReflectionStore, Settings
from topicloom_app.cli.context import make_context

NUTS = "I'm allergic to nuts."


@pytest.fixture
def met(run: Run) -> str:
    """A session in which the user said something that lasts; reflection is not due."""
    assert run("chat", "ann", stdin=f"{NUTS}\nWhat shall I cook?\n").code == 0
    return "ann"


def kept_facts(run: Run, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in run("facts", name, "--json").out.splitlines()]


class TestReflect:
    @pytest.mark.slow
    def test_it_says_why_it_waits_and_what_it_found(self, run: Run, met: str) -> None:
        waits = run("reflect", met)
        assert (waits.code, waits.err) == (0, "")
        assert "not due: 2 of 6 rounds since the last reflection" in waits.out
        assert kept_facts(run, met) == []
        found = run("reflect", met, "--force")
        assert "read 4 messages, up to m4: 1 fact\n" in found.out
        assert NUTS in found.out
        again = run("reflect", met, "--force")
        assert again.out == "nothing was said since the last reflection\n"

    def test_facts_name_their_messages(self, run: Run, met: str) -> None:
        assert "no facts yet" in run("facts", met).out
        run("reflect", met, "--force")
        assert run("facts", met).out.split()[-1] == "m1"
        (fact,) = kept_facts(run, met)
        assert (fact["fact"], fact["messages"]) == (NUTS, ["m1"])
        assert fact["since"] == fact["at"]

    @pytest.mark.slow
    def test_a_session_that_was_split_is_read_whole(self, run: Run, recording: Path) -> None:
        arguments = ("--session", "talk", "--no-questions", "--window", "1000")
        assert run("replay", str(recording), *arguments).code == 0
        assert "read 32 messages, up to m32" in run("reflect", "talk").out
        assert run("chat", "talk", stdin="And then?\n").code == 0

    @pytest.mark.slow
    def test_somebody_else_is_at_it(self, run: Run, met: str, tmp_path: Path) -> None:
        with make_context(tmp_path / "sessions", Settings()).open_store() as store:
            since, policy = time.time(), ReflectionPolicy()
            with ReflectionStore(store).hold_lease(met, since, policy):
                assert_one_line(run("reflect", met, "--force"), "is being reflected upon")
                assert_one_line(run("purge", met, "--message", "m1", "--yes"), "reflected upon")
        assert run("purge", met, "--message", "m1", "--yes").code == 0

    def test_no_such_session(self, run: Run) -> None:
        assert_one_line(run("reflect", "none"), "there is no session 'none'")
        assert_one_line(run("facts", "none"), "there is no session 'none'")


@pytest.mark.slow
def test_a_chat_reflects_beside_itself(run: Run) -> None:
    talk = "\n".join([NUTS, *(f"Message {n}." for n in range(5))])
    assert run("chat", "ann", stdin=f"{talk}\n").code == 0
    assert [fact["messages"] for fact in kept_facts(run, "ann")] == [["m1"]]


class TestPurge:
    @pytest.mark.slow
    def test_facts_go_with_their_messages(self, run: Run, met: str) -> None:
        run("reflect", met, "--force")
        kept = run("purge", met, "--message", "m1", stdin="n\n")
        assert "facts that rest on them:" in kept.out
        assert len(kept_facts(run, met)) == 1
        gone = run("purge", met, "--message", "m1", "--yes")
        assert "facts removed with them: 1" in gone.out
        assert kept_facts(run, met) == []
        assert run("reflect", met, "--force").out.startswith("nothing was said")

    @pytest.mark.slow
    def test_nothing_in_the_folder_tells_of_them(self, run: Run, met: str, tmp_path: Path) -> None:
        run("reflect", met, "--force")
        assert run("purge", met, "--message", "m1", "--yes").code == 0
        with make_context(tmp_path / "sessions", Settings()).open_store() as store:
            assert "nuts" not in str(store.search(("topicloom",), limit=100))

    @pytest.mark.slow
    def test_facts_of_messages_that_went_before_go_too(
        self, run: Run, met: str, tmp_path: Path
    ) -> None:
        run("reflect", met, "--force")
        context = make_context(tmp_path / "sessions", Settings())
        session, store = context.read_session(met)
        store.purge(store.plan_purge(session, [1]))
        assert "facts removed with them: 1" in run("purge", met, "--message", "m1", "--yes").out
        assert "nothing to remove" in run("purge", met, "--message", "m1", "--yes").out


@pytest.mark.slow
def test_a_deleted_session_leaves_nothing(run: Run, met: str, tmp_path: Path) -> None:
    run("reflect", met, "--force")
    assert "nothing was deleted" in run("delete", met, stdin="n\n").out
    assert run("delete", met, "--yes").code == 0
    assert not any(
        b"nuts" in path.read_bytes() for path in tmp_path.rglob("sessions/**/*") if path.is_file()
    )
    assert_one_line(run("delete", met, "--yes"), "there is no session")
