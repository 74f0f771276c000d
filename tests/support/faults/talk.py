"""The conversation that faults are tried on: what is said, and what has to be there afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from reviewed import Merger, Reviewer
from sessions import chatter, open_graph, thread

from faults.checker import Said
from faults.stages import NAME, Opened, Stage
from topicloom import MERGER, REVIEWER, NoNewMessageError, ReplyRequest, Roles, TurnOptions
from topicloom.hosting import Graph
from topicloom.testing import (
    Clock,
    NameRouter,
    ScriptedReply,
    ScriptedResponder,
    fake_roles,
    make_tool_call,
    make_topic_search,
)

TAGS = "茶雨山"
ODD = ("", " NUL\0", " \u202eRTL\u202c e\u0301", " CR\r\nLS\u2028NEL\x85", " {{7*7}} <memory>m4")
"""Ends of messages that storage, JSON, templates or prompts might change."""
SECRET = "zyxwvutsium4711"
"""Said in the fourth round and nowhere else."""
ROUNDS = 8
"""Rounds of the conversation that a case begins with."""
SPLITS = (4, 7)
"""Rounds before which all but the newest four messages move into topics."""
CONFIG: RunnableConfig = thread(NAME)


def told(number: int) -> str:
    """What the user says in a round, from 0."""
    secret = f"。\n\n我对{SECRET}过敏。" if number == 3 else ""
    said = chatter(TAGS[number // 2 % 3], number, characters=110)
    return said + secret + ODD[number % len(ODD)]


class Answers:
    """Replies to what is told, the same however often; some call a tool or search first."""

    def __init__(self) -> None:
        self._searched: set[int] = set()

    def __call__(self, request: ReplyRequest) -> ScriptedReply:
        number = next(n for n in range(100) if request.query == told(n))
        if number % 4 == 2 and not isinstance(request.messages[-1], ToolMessage):
            return make_tool_call("look_up", {"city": str(number)})
        if number % 4 == 1 and request.search and number not in self._searched:
            self._searched.add(number)
            return make_topic_search("茶")
        return f"回答{number}"


def look_up(city: str) -> str:
    """Something to call."""
    return f"{city}：查到了。"


def expected(rounds: int) -> list[Said]:
    """The whole conversation after so many rounds."""
    said: list[Said] = []
    for number in range(rounds):
        said.append(("user", told(number)))
        if number % 4 == 2:
            said += [("assistant", ""), ("tool", look_up(str(number)))]
        said.append(("assistant", f"回答{number}"))
    return said


def roles() -> Roles:
    """Roles that need no model; reviews sum topics up, and archive those that rest."""
    made = fake_roles(ScriptedResponder(otherwise=Answers()), router=NameRouter({"茶": 0.9}))
    return made.replace(REVIEWER, Reviewer(dict.fromkeys(TAGS, 0.1))).replace(MERGER, Merger())


@contextmanager
def talking(stage: Stage) -> Iterator[tuple[Graph, Opened]]:
    """The graph over a stage, as a process finds it at its start."""
    with stage.open() as opened:
        yield make_graph(stage, opened), opened


def make_graph(stage: Stage, opened: Opened, **changes: Any) -> Graph:
    """The graph over what is open of a stage; settings may be others."""
    return open_graph(
        stage.folder,
        roles(),
        checkpointer=opened.saver,
        storage=opened.storage,
        store=opened.store,
        tools=[look_up],
        clock=Clock(),
        activation={"floor": 0, "usual": 2, "ceiling": 2},
        **changes,
    )


def say(
    graph: Graph,
    number: int,
    *edits: BaseMessage,
    patient: bool,
    durability: Any = "sync",
    **turn: Any,
) -> None:
    """Have a round said, behind edits, as an application that does not know how far it came before.

    One that is patient lets a turn that was cut off go on. Any other says the same again under the
    same id; that there is nothing new then means that it was answered.
    """
    if patient:
        finish(graph, durability=durability, **turn)
    options = {"durability": durability, "context": TurnOptions(**turn)}
    try:
        said = HumanMessage(told(number), id=f"round-{number}")
        graph.invoke({"messages": [*edits, said]}, CONFIG, **options)
    except NoNewMessageError:
        return


def finish(graph: Graph, *, durability: Any = "sync", **turn: Any) -> bool:
    """Let a turn that was cut off go on; false if there is none."""
    # Not `next`: it leaves out a step whose writes were kept before its checkpoint was.
    pending = [task.name for task in graph.get_state(CONFIG).tasks]
    # A crash before the first checkpoint leaves nothing to go on with.
    cut_off = bool(pending) and "__start__" not in pending
    if cut_off:
        graph.invoke(None, CONFIG, durability=durability, context=TurnOptions(**turn))
    return cut_off


def talk(stage: Stage, rounds: int = ROUNDS) -> None:
    """Have the conversation, from its beginning."""
    with talking(stage) as (graph, _):
        for number in range(rounds):
            say(graph, number, patient=True, keep_messages=4 if number in SPLITS else None)
