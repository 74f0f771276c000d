"""`topicloom review` and `topicloom purge`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run, replay_recording

from topicloom import FileStorage, Settings, build_session_graph
from topicloom.hosting import name_thread
from topicloom_app.cli.context import make_context


@pytest.fixture
def talked(run: Run, recording: Path) -> str:
    """A session with topics; its messages are of long ago."""
    replay_recording(run, recording)
    return "talk"


def transcript(run: Run, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in run("transcript", name, "--json").out.splitlines()]


class TestReview:
    @pytest.mark.slow
    def test_what_is_done_is_said_and_said_once(self, run: Run, talked: str) -> None:
        before = transcript(run, talked)
        tried = run("review", talked, "--dry-run")
        assert (tried.code, tried.err) == (0, "")
        assert "dry run, nothing was changed" in tried.out
        assert "t1 “" in tried.out
        assert "x reviewer (embedded)" in " ".join(tried.out.split())
        done = run("review", talked)
        assert done.code == 0
        assert "dry run" not in done.out
        again = run("review", talked)
        assert again.out == "0 topics reviewed, 0 merged, 0 archived, 0 put right\n"
        assert transcript(run, talked) == before
        assert "t1 “" in run("receipt", talked).out

    @pytest.mark.slow
    def test_a_session_in_use_is_not_reviewed_but_shown(
        self, run: Run, talked: str, tmp_path: Path
    ) -> None:
        with FileStorage(tmp_path / "sessions").lock(talked):
            assert run("review", talked, "--dry-run").code == 0
            busy = run("review", talked)
        assert busy.code == 2
        assert "is in use" in busy.err
        assert "topics reviewed" in run("review", talked).out

    def test_no_such_session(self, run: Run) -> None:
        assert "there is no session" in run("review", "none").err
        assert "cannot name a session" in run("review", "../x").err


class TestPurge:
    @pytest.mark.slow
    def test_messages_are_named_asked_for_and_removed(self, run: Run, talked: str) -> None:
        before = transcript(run, talked)
        kept = run("purge", talked, "--message", "m3-m4", stdin="n\n")
        assert "m3 2026-03-02 Yue: " in kept.out
        assert "nothing was removed" in kept.out
        assert transcript(run, talked) == before
        gone = run("purge", talked, "--message", "m3-m4", "--message", "m32", stdin="y\n")
        assert (gone.code, "3 messages were removed" in gone.out) == (0, True)
        after = transcript(run, talked)
        removed = [row["id"] for row in after if row["text"] == "(removed on request)"]
        assert removed == ["m3", "m4", "m32"]
        assert [r for r in after if r["id"] not in removed] == [
            r for r in before if r["id"] not in removed
        ]
        assert "nothing to remove" in run("purge", talked, "--message", "m3", "--yes").out

    @pytest.mark.slow
    def test_the_session_goes_on(self, run: Run, talked: str, tmp_path: Path) -> None:
        assert run("purge", talked, "--message", "m31-m32", "--yes").code == 0
        assert run("chat", talked, stdin="And then?\n").code == 0
        texts = [row["text"] for row in transcript(run, talked)]
        assert texts[30:33] == ["(removed on request)", "(removed on request)", "And then?"]
        context = make_context(tmp_path / "sessions", Settings())
        with context.open_checkpoints() as saver:
            graph = build_session_graph(settings=context.settings, storage=context.storage)
            values = graph.compile(checkpointer=saver).get_state(name_thread(talked)).values
        assert "shin hurts after running, 4" not in str(values)
        assert (
            b"shin hurts after running, 4"
            not in (context.folder / "checkpoints.sqlite").read_bytes()
        )

    @pytest.mark.slow
    def test_a_purged_topic_keeps_neither_messages_nor_name(
        self, run: Run, talked: str, tmp_path: Path
    ) -> None:
        outcome = run("purge", talked, "--topic", "t1", "--yes")
        assert outcome.code == 0
        assert "names, briefs and summaries of t1 “" in outcome.out
        held = [r["text"] for r in map(json.loads, run_topic(run, talked, "t1"))]
        assert held
        assert set(held) == {"(removed on request)"}
        assert "topic t1" in run("topics", talked).out
        assert run("receipt", talked, "-n", "99").code == 0
        context = make_context(tmp_path / "sessions", Settings())
        session, store = context.read_session(talked)
        assert store.receipts(session)
        assert not store.topic_table(session)["t1"].summary
        assert run("review", talked).code == 0
        session, store = context.read_session(talked)
        assert "(removed on request)" in store.topic_table(session)["t1"].summary

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--topic", "t99"], "has no topic 't99'"),
            (["--message", "m99"], "has no message 'm99' (there: m1 to m32)"),
            (["--message", "tea"], "has no message 'tea'"),
            (["--message", "m5-m2"], "'m5-m2' ends before it begins: write m2-m5"),
            (["--message", "m1-m99"], "has no message 'm99'"),
            (["--message", "m1, not m2"], "has no message 'not'"),
            (["--message", "m3-m\u00b2"], "has no message 'm\u00b2'"),
            (["--message", "m" + "1" * 5_000], "has no message 'm1111"),
            ([], "nothing to remove"),
        ],
    )
    def test_what_there_is_not(
        self, run: Run, talked: str, arguments: list[str], said: str
    ) -> None:
        outcome = run("purge", talked, *arguments)
        assert outcome.code == 2
        assert said in outcome.err

    def test_a_purge_without_a_terminal_wants_yes_said(self, run: Run, talked: str) -> None:
        before = transcript(run, talked)
        assert run("purge", talked, "--message", "m3").code == 1
        assert transcript(run, talked) == before


def run_topic(run: Run, name: str, topic: str) -> list[str]:
    return run("transcript", name, "--topic", topic, "--json").out.splitlines()
