"""Replays conversations in child processes and kills them: `crash_replay.py FOLDER KILLS SEED`.

Everything is imported once; each replay is a fork. After every kill another fork opens what is
there, as after a restart, and checks it. Prints a JSON line with what happened.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from sessions import chatter, check_kept, kept, open_graph, thread

from topicloom.graph.stored import Graph, get_session
from topicloom.roles.responder import ReplyRequest
from topicloom.testing import Clock, ScriptedReply, ScriptedResponder, fake_roles, make_tool_call

TURNS = 14
ATTEMPTS = 3
"""Kills of one replay, as many as hit it."""


@dataclass(frozen=True)
class Plan:
    """How a replay is run."""

    name: str
    durability: Any
    patient: bool
    """Whether a turn that was cut off is finished first; otherwise the next message just comes."""


HABITS = [("exit", True), ("sync", True), ("async", True), ("sync", False), ("async", False)]


def look_up(city: str) -> str:
    """Something to call."""
    return f"{city}：查到了。"


def told(number: int) -> str:
    """What the user says in a turn, from 0."""
    return chatter("茶雨山"[number % 3], number, characters=110)


def expected() -> list[str]:
    """The whole conversation."""
    texts: list[str] = []
    for number in range(TURNS):
        texts.append(told(number))
        if number % 4 == 3:
            texts += ["", look_up(str(number))]
        texts.append(f"回答{number}")
    return texts


def answer(request: ReplyRequest) -> ScriptedReply:
    """Says the same in the same turn, however often it is asked."""
    number = next(n for n in range(TURNS) if request.query == told(n))
    if number % 4 == 3 and not isinstance(request.messages[-1], ToolMessage):
        return make_tool_call("look_up", {"city": str(number)})
    return f"回答{number}"


@contextmanager
def opened(folder: Path) -> Iterator[Graph]:
    """The graph over a folder, as a process finds it at its start."""
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
        responder = ScriptedResponder(otherwise=answer)
        yield open_graph(
            folder / "sessions",
            fake_roles(responder),
            checkpointer=saver,
            tools=[look_up],
            clock=Clock(),
        )


def replay(folder: Path, plan: Plan, ready: Callable[[], None]) -> None:
    """Go on with a conversation where it stopped, to its end."""
    with opened(folder) as graph:
        config = thread(plan.name)
        # Not `next`: it leaves out a step whose writes were kept before its checkpoint was.
        pending = [task.name for task in graph.get_state(config).tasks]
        ready()
        if plan.patient and pending and "__start__" not in pending:
            graph.invoke(None, config, durability=plan.durability)
        for number in range(heard(folder, graph, plan), TURNS):
            said = {"messages": [HumanMessage(told(number), id=f"turn-{number}")]}
            graph.invoke(said, config, durability=plan.durability)


def heard(folder: Path, graph: Graph, plan: Plan) -> int:
    """Messages of the user that need not be said again."""
    session = get_session(graph, thread(plan.name))
    stored_messages = kept(folder / "sessions", session).messages(session)
    return sum(r.role == "user" for r in stored_messages)


def check(folder: Path, plan: Plan, *, done: bool) -> None:
    """What is kept is the beginning of the conversation, every message once."""
    with opened(folder) as graph:
        session = get_session(graph, thread(plan.name))
        store = kept(folder / "sessions", session)
        stored_messages = check_kept(store, session)
        assert [r.turn for r in store.receipts(session)] == list(range(1, session.turn + 1))
        texts = [r.text for r in stored_messages]
        if plan.patient:
            assert texts == expected()[: len(texts)], texts
            assert not done or texts == expected(), texts
            return
        # What was being said when the process died may be missing, and nothing else.
        users = [r.text for r in stored_messages if r.role == "user"]
        assert users == [told(number) for number in range(len(users))], texts
        assert not done or len(users) == TURNS, texts
        order = iter(expected())
        assert all(text in order for text in texts), texts


def fork(work: Callable[[], None]) -> int:
    """Do work in a child process; returns its id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:  # noqa: BLE001 - a child must not go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def succeeded(child: int) -> bool:
    """Wait for a child; whether it ended well."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def killed(folder: Path, plan: Plan, wait: float) -> bool:
    """Replay and kill after a while; whether there was anything left to kill."""
    reading, writing = os.pipe()
    child = fork(lambda: replay(folder, plan, lambda: _tell(writing)))
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _tell(pipe: int) -> None:
    os.write(pipe, b".")


def played(folder: Path, plan: Plan, chance: random.Random) -> int:
    """One replay, killed some times and then run to its end; how often it was killed."""
    kills = 0
    for _ in range(ATTEMPTS):
        kills += killed(folder, plan, chance.uniform(0.0, 0.6))
        if not succeeded(fork(lambda: check(folder, plan, done=False))):
            sys.exit(f"{plan} is damaged")
    ended = succeeded(fork(lambda: replay(folder, plan, lambda: None)))
    if not (ended and succeeded(fork(lambda: check(folder, plan, done=True)))):
        sys.exit(f"{plan} did not come to its end")
    return kills


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill replays until there were enough kills; every replay comes to its end."""
    chance = random.Random(seed)
    done = replays = 0
    while done < kills:
        durability, patient = HABITS[replays % len(HABITS)]
        done += played(folder, Plan(f"replay-{replays}", durability, patient), chance)
        replays += 1
    print(json.dumps({"kills": done, "replays": replays}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
