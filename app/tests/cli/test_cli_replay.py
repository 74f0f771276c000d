"""`topicloom replay`, and the commands that look into what it kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, question, write
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from openai_behaviours import Reply
from openai_server import OpenAIServer

from topicloom import FileStorage, Settings, TopicMiddleware
from topicloom_app import find_sample, load_conversations
from topicloom_app.cli.context import make_context
from topicloom_app.recordings.replay import find_position, load_first_conversation

SMALL = ("--window", "1000")
ASKED = question("q1", "What does the worktop cost?", "140", ["a0"])


@pytest.mark.slow
def test_a_replay_tells_what_became_of_it(run: Run, recording: Path, tmp_path: Path) -> None:
    outcome = run("replay", str(recording), *SMALL)
    assert (outcome.code, outcome.err) == (0, "")
    for part in (
        "talk: 32 messages, 1 March 2026 to 25 March 2026",
        "small, 1,000 tokens",
        "What does the oak worktop cost at first?",
        "of 3 questions",
        "32 messages, 1 March 2026",
        "t1",
        "active ○ dormant",
        "topicloom chat",
    ):
        assert part in outcome.out
    assert not (tmp_path / "sessions").exists()


@pytest.mark.slow
def test_questions_are_asked_at_their_place(run: Run, recording: Path) -> None:
    out = run("replay", str(recording), *SMALL, "--session", "kept").out
    # q2 is asked when only the beginning is known; q3 before the message that it rests on.
    assert "✓ How far around the lake at first?" in out
    assert "✗ And with evidence after that?" in out
    assert "missing m31" in out


@pytest.mark.slow
def test_a_kept_replay_goes_on_where_it_stopped(run: Run, recording: Path, tmp_path: Path) -> None:
    run("replay", str(recording), *SMALL, "--session", "kept", "--limit", "8", "--no-questions")
    context = make_context(tmp_path / "sessions", Settings())
    begun = context.find_session("kept")
    assert begun is not None
    assert begun.count == 8
    again = run("replay", str(recording), *SMALL, "--session", "kept")
    assert "topicloom chat kept" in again.out
    after = context.find_session("kept")
    assert after is not None
    # The questions did not become part of it.
    assert (after.count, after.turn) == (32, 16)
    session, store = context.read_session("kept")
    heard = [r.source for r in store.messages(session)]
    (conversation,) = load_conversations(recording)
    assert heard == [m.id for m in conversation.messages]


def test_a_session_that_holds_something_else(run: Run, recording: Path) -> None:
    run("chat", "kept", stdin="hello\n")
    outcome = run("replay", str(recording), "--session", "kept")
    assert outcome.code == 2
    assert "holds another conversation" in outcome.err


@pytest.mark.slow
def test_reading_a_kept_session(run: Run, recording: Path) -> None:
    run("replay", str(recording), *SMALL, "--session", "kept", "--no-questions")
    listed = run("sessions").out
    assert "kept" in listed
    assert "25 March 2026" in listed
    assert "○" in run("topics", "kept").out or "●" in run("topics", "kept").out
    assert "turn 16, answering m31" in run("receipt", "kept").out
    assert "turn 14, " in run("receipt", "kept", "-n", "3").out
    shown = run("transcript", "kept", "--last", "2").out
    assert shown.count("\n") == 3
    assert "Yue: My shin hurts after running, 4 days" in shown


@pytest.mark.slow
def test_a_transcript_as_json(run: Run, recording: Path) -> None:
    run("replay", str(recording), *SMALL, "--session", "kept", "--no-questions")
    rows = [json.loads(line) for line in run("transcript", "kept", "--json").out.splitlines()]
    assert [row["id"] for row in rows] == [f"m{n}" for n in range(1, 33)]
    topic = [
        json.loads(x)
        for x in run("transcript", "kept", "--topic", "t1", "--json").out.split("\n")
        if x
    ]
    assert topic
    assert all(row in rows for row in topic)
    wrong = run("transcript", "kept", "--topic", "t99")
    assert wrong.code == 2
    assert "no topic 't99'" in wrong.err


def test_sessions_without_checkpoints_are_listed(run: Run, recording: Path, tmp_path: Path) -> None:
    assert "no sessions" in run("sessions").out
    run("chat", "kept", stdin="hello\n")
    for file in (tmp_path / "sessions").glob("checkpoints.sqlite*"):
        file.unlink()
    assert "its checkpoints are not here" in run("sessions").out


def test_a_session_of_an_agent_is_listed_as_any_other(run: Run, tmp_path: Path) -> None:
    with make_context(tmp_path / "sessions", Settings()).open_checkpoints() as saver:
        agent = create_agent(
            GenericFakeChatModel(messages=iter([AIMessage("Noted.")])),
            middleware=[TopicMiddleware(storage=FileStorage(tmp_path / "sessions"))],
            checkpointer=saver,
        )
        said: Any = {"messages": [("user", "We fly to Rome on 16 May.")]}
        agent.invoke(said, {"configurable": {"thread_id": "trip"}})
    (row,) = (line for line in run("sessions").out.splitlines() if line.startswith("trip"))
    assert "checkpoints" not in row
    assert row.split()[1:3] == ["2", "0"]
    refused = run("review", "trip")
    assert refused.code == 2
    assert "belongs to an agent" in refused.err


@pytest.mark.slow
def test_many_questions_take_a_line_each(run: Run, tmp_path: Path) -> None:
    messages = [
        {"id": "1", "role": "user", "text": "The jar stands in the cellar"},
        {"id": "2", "role": "assistant", "text": "Noted."},
    ]
    questions = [question(f"q{n}", f"Where is the jar, {n}?", "cellar", ["1"]) for n in range(25)]
    file = write(
        tmp_path / "many.jsonl", [{"id": "x", "messages": messages, "questions": questions}]
    )
    out = run("replay", str(file)).out
    assert "✓ Where is the jar, 24?" in out
    assert "expected" not in out
    assert "25 of 25 questions" in out


@pytest.mark.slow
def test_a_model_answers_the_questions(
    run: Run, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer, recording: Path
) -> None:
    openai_server.then(Reply("It costs 140 euros."))
    monkeypatch.setenv("TOPICLOOM_MODEL", "openai:some")
    monkeypatch.setenv("TOPICLOOM_BASE_URL", openai_server.base_url)
    monkeypatch.setenv("TOPICLOOM_WINDOW", "16000")
    file = write(recording, [{**json.loads(recording.read_text()), "questions": [ASKED]}])
    outcome = run("replay", str(file))
    assert "model openai:some" in outcome.out
    assert "   reply It costs 140 euros." in outcome.out
    # The recorded replies asked no model.
    assert len(openai_server.requests) == 1


def test_a_list_of_messages_is_a_recording(run: Run, tmp_path: Path) -> None:
    rows = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    outcome = run("replay", str(write(tmp_path / "plain.jsonl", rows)))
    assert outcome.code == 0
    assert "2 messages." in outcome.out


def test_the_beginning_of_a_recording(recording: Path) -> None:
    part = load_first_conversation(recording, 10)
    assert len(part.messages) == 10
    assert [q.id for q in part.questions] == ["q1", "q2"]
    assert [find_position(q, part) for q in part.questions] == [None, 8]


def test_a_time_is_a_place(recording: Path) -> None:
    whole = load_first_conversation(recording, None)
    assert find_position(whole.questions[2], whole) == 10


def test_the_sample_is_a_conversation() -> None:
    assert load_first_conversation(find_sample(), None).questions
