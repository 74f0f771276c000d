"""What a session does that is killed on the way, and what has to be there once it got through."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage

from faults.checker import Said
from faults.raw import Raw
from faults.stages import NAME, FilesStage, Stage
from faults.talk import CONFIG, ROUNDS, SECRET, expected, roles, say, talk, talking
from topicloom import (
    Memory,
    TopicLoomError,
    reflect_once,
    review_session,
)
from topicloom_app.cli import main

Act = Callable[[Stage, bool], None]
"""Does it on a stage, or goes on with it; True if what was cut off is let go on first."""


SIDE_FILES = ("ranges.jsonl", "ledger.jsonl")
"""Files that a repair makes anew."""
RENAMED = "另一个名字"
"""What a topic is called after an edit."""
EDITED = "我对什么都不过敏。"
"""What the message with the secret says after an edit."""
ANSWER = expected(ROUNDS)[-1][1]
"""The newest reply, which the edit removes."""


@dataclass(frozen=True)
class Operation:
    """Something that changes a session."""

    name: str
    act: Act
    after: Sequence[Said]
    """The conversation once it got through."""
    wants: Callable[[Stage, Raw], Iterator[str]]
    """What is wrong once it got through."""
    before: Sequence[Said] = tuple(expected(ROUNDS))
    """The conversation that it begins with; empty where there is nothing yet."""
    breaks: tuple[str, ...] = ()
    """Files of the session that are gone before it."""


def operations(kind: str) -> list[Operation]:
    """The operations that are tried on stages of a kind."""
    talked, nothing = expected(ROUNDS), list[Said]()
    purged = [(role, "" if SECRET in text else text) for role, text in talked]
    begun = expected(1)
    more = [
        Operation("turn", _turn, expected(ROUNDS + 1), _holds),
        Operation("turn-exit", partial(_turn, durability="exit"), expected(ROUNDS + 1), _holds),
        Operation("turn-async", partial(_turn, durability="async"), expected(ROUNDS + 1), _holds),
        Operation("split", partial(_turn, keep_messages=0), expected(ROUNDS + 1), _is_split),
        Operation("edit", _edit, expected(ROUNDS + 1), _is_edited),
        Operation("review", _review, talked, _is_archived),
        Operation("reflection", _reflect, talked, _has_fact),
        Operation("rename", _rename, talked, _is_renamed),
        Operation("set-up", lambda stage, patient: talk(stage, 1), begun, _holds, nothing),
    ]
    if kind != "files":
        return [*more, Operation("purge", _purge, purged, _is_purged)]
    return [
        *more,
        Operation("purge", _command("purge", NAME, "--yes", "--message", "m9"), purged, _is_purged),
        Operation("reflect", _command("reflect", NAME, "--force"), talked, _has_fact),
        Operation("repair", _command("repair", NAME), talked, _holds, breaks=SIDE_FILES),
        Operation("import", _import, [*talked, *begun], _holds),
        Operation("export", _command("memory", NAME, "--out", "{}/memory"), talked, _is_exported),
    ]


def _turn(stage: Stage, patient: bool, **options: Any) -> None:
    with talking(stage) as (graph, _):
        say(graph, ROUNDS, patient=patient, **options)


def _edit(stage: Stage, patient: bool) -> None:
    """A turn in which a message of a topic has other words, and the newest reply is gone."""
    with talking(stage) as (graph, _):
        state = graph.get_state(CONFIG)
        # LangGraph shows an input that it kept and did not take in yet; the next one replaces it.
        if "__start__" in [task.name for task in state.tasks]:
            state = graph.get_state(state.parent_config or CONFIG)
        newest = state.values["messages"][-1]
        gone = [RemoveMessage(id=newest.id)] if newest.text == ANSWER else []
        say(graph, ROUNDS, HumanMessage(EDITED, id="round-3"), *gone, patient=patient)


def _rename(stage: Stage, patient: bool) -> None:
    """An edit as the inspector makes it."""
    with talking(stage) as (graph, _):
        memory = Memory.of(graph, CONFIG)
        if memory.topics()[0].name != RENAMED:  # it may have got through, but for saying so
            memory.rename("t1", RENAMED)


def _import(stage: Stage, patient: bool) -> None:
    """A round more, as a recording."""
    rows = [{"role": role, "content": text} for role, text in expected(1)]
    with tempfile.TemporaryDirectory() as folder:  # not on the disk that fails
        path = Path(folder, "recording.jsonl")
        path.write_text("\n".join(json.dumps(row) for row in rows))
        assert run_command(stage, "import", "jsonl", str(path), "--session", NAME) == 0


def _review(stage: Stage, patient: bool) -> None:
    with talking(stage) as (graph, _):
        review_session(graph, CONFIG, now=datetime(2026, 6, 1, tzinfo=UTC), roles=roles())


def _reflect(stage: Stage, patient: bool) -> None:
    with stage.open() as opened:
        reflect_once(
            NAME,
            force=True,
            checkpointer=opened.saver,
            storage=opened.storage,
            store=opened.store,
            roles=roles(),
        )


def _purge(stage: Stage, patient: bool) -> None:
    with talking(stage) as (graph, _):
        assert not Memory.of(graph, CONFIG).forget("m9").left


def run_command(stage: Stage, *words: str) -> int:
    """Run `topicloom` on a folder, what it prints aside; its exit code, 0 or 1.

    Raises:
        TopicLoomError: It says that it cannot.
    """
    with redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit) as end:
        main(["--folder", str(stage.folder), *(word.format(stage.folder) for word in words)])
    if end.value.code == 2:
        raise TopicLoomError(f"{words[0]} says why it cannot: {said.getvalue()}")
    return int(end.value.code or 0)


def _command(*words: str) -> Act:
    def act(stage: Stage, patient: bool) -> None:
        assert run_command(stage, *words) == 0

    return act


def _holds(stage: Stage, raw: Raw) -> Iterator[str]:
    yield from ()


def _is_edited(stage: Stage, raw: Raw) -> Iterator[str]:
    edits = [e.body for e in raw.chains.get("superseded", {}).values()]
    changed = [(m["seq"], m["text"]) for edit in edits for m in edit.get("changed", ())]
    if changed != [(9, EDITED)]:
        yield f"not changed once: {changed}"
    if [n for edit in edits for n in edit.get("removed", ())] != [len(expected(ROUNDS))]:
        yield f"the newest reply is not out of view once: {edits}"


def _is_renamed(stage: Stage, raw: Raw) -> Iterator[str]:
    rows = {e.body["id"]: e.body for e in raw.chains["roster"].values()}
    if rows["t1"]["name"] != RENAMED:
        yield f"the topic is called {rows['t1']['name']!r}"


def _is_split(stage: Stage, raw: Raw) -> Iterator[str]:
    session = raw.session or {}
    if session.get("tail", 1) < session["count"] - 4:
        yield f"nothing was split: {session}"


def _is_archived(stage: Stage, raw: Raw) -> Iterator[str]:
    rows = {e.body["id"]: e.body for e in raw.chains["roster"].values()}
    if not any(row.get("status") == "archived" for row in rows.values()):
        yield f"no topic is archived: {[(r['name'], r.get('status')) for r in rows.values()]}"
    if not all(row.get("summary") for row in rows.values()):
        yield "a topic has no summary"


def _has_fact(stage: Stage, raw: Raw) -> Iterator[str]:
    facts = [text for space, _, text in stage.items() if space.endswith(f".{NAME}.facts")]
    if sum(SECRET in str(fact) for fact in facts) != 1:
        yield f"the fact is not there once: {facts}"


def _is_purged(stage: Stage, raw: Raw) -> Iterator[str]:
    row = next(e.body for e in raw.chains["transcript"].values() if e.body["id"] == "m9")
    if "purged" not in row:
        yield "the message is not purged"
    if found := stage.places_of(SECRET.encode()):
        yield f"it is still in {found}"


def _is_exported(stage: Stage, raw: Raw) -> Iterator[str]:
    assert isinstance(stage, FilesStage)
    files = sorted(path.name for path in (stage.root / "memory").iterdir())
    topics = {e.body["id"] for e in raw.chains["roster"].values()}
    if files != sorted(f"{NAME}-{topic}.md" for topic in topics):
        yield f"the files are {files}"
