"""Edits of what was said do what their user means: nothing superseded stands in any prompt."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import interrupt
from sessions import chatter, check_kept, kept, last_receipt, open_graph, thread

from topicloom import (
    Answer,
    Brief,
    BriefRequest,
    LocalRole,
    ReplyError,
    Roles,
    TurnOptions,
    get_session,
)
from topicloom.hosting import get_text
from topicloom.testing import (
    NameRouter,
    ScriptedResponder,
    SteadyReader,
    TaggedSplitter,
    fake_roles,
    make_tool_call,
)

SECRET = "XSECRETX"
ALL = RemoveMessage(id=REMOVE_ALL_MESSAGES)


@dataclass
class _Briefs(LocalRole[BriefRequest, Brief]):
    """Writes what was said first into name and brief."""

    requests: list[BriefRequest] = field(default_factory=list)

    def call(self, request: BriefRequest) -> Answer[Brief]:
        self.requests.append(request)
        text = request.messages[0].text
        return Answer(Brief(text[:80], text))


class Listeners:
    """Roles that note down what they are asked."""

    def __init__(self) -> None:
        self.all: list[Any] = [
            ScriptedResponder(),
            SteadyReader(),
            TaggedSplitter(),
            NameRouter({}),
            _Briefs(),
        ]

    @property
    def roles(self) -> Roles:
        responder, reader, splitter, router, brief = self.all
        return fake_roles(responder, reader=reader, splitter=splitter, router=router, brief=brief)

    @property
    def prompt(self) -> list[tuple[str, str]]:
        """The newest prompt of the main model: kinds and texts."""
        return [(m.type, get_text(m)) for m in self.all[0].requests[-1].messages]

    def forget(self) -> None:
        for role in self.all:
            role.requests.clear()

    def heard(self) -> str:
        return repr([role.requests for role in self.all])


@pytest.fixture
def listeners() -> Listeners:
    return Listeners()


def say(graph: Any, *messages: BaseMessage, keep: int | None = None, **options: Any) -> Any:
    context = TurnOptions(keep_messages=keep, **options)
    return graph.invoke({"messages": list(messages)}, thread(), context=context)["messages"]


def begin(graph: Any, *, keep: int | None = None, rounds: int = 2) -> Any:
    """A conversation in which the first message of the last two rounds but one tells a secret."""
    for n in range(1, rounds + 1):
        secret = f" {SECRET}" if n == rounds - 1 else ""
        text = chatter("茶山"[n % 2], n, characters=40) + secret
        shown = say(graph, HumanMessage(text, id=f"u{n}"), keep=keep)
    return shown


def texts(messages: Any) -> list[str]:
    return [get_text(m) for m in messages]


def check(folder: Path, graph: Any, listeners: Listeners) -> None:
    """What holds after an edit, whatever comes: nothing of the secret is shown to anyone."""
    listeners.forget()
    say(graph, HumanMessage(f"你忘了吗，{chatter('茶', 90)}"))
    for n in range(91, 94):
        say(graph, HumanMessage(chatter("茶山"[n % 2], n)), keep=2)
    assert listeners.all[2].requests
    assert SECRET not in listeners.heard()
    session = get_session(graph, thread())
    store = kept(folder, session)
    check_kept(store, session)
    assert SECRET not in repr([store.messages(session), store.notes(session)])
    table = store.topic_table(session)
    assert SECRET not in repr([(t, store.topic_messages(session, t)) for t in table])


@pytest.mark.slow
@pytest.mark.parametrize("keep", [None, 2])
@pytest.mark.parametrize("by_update", [False, True])
def test_a_message_that_is_removed(
    tmp_path: Path, listeners: Listeners, by_update: bool, keep: int | None
) -> None:
    graph = open_graph(tmp_path, listeners.roles)
    shown = begin(graph, keep=keep)
    assert SECRET in repr(shown)
    gone, new = RemoveMessage(id="u1"), HumanMessage("还有呢？")
    if by_update:
        graph.update_state(thread(), {"messages": [gone]})
        shown = say(graph, new)
    else:
        shown = say(graph, gone, new)
    assert SECRET not in repr(listeners.prompt)
    # No prompt begins with a reply: a line stands before the one whose question is gone.
    assert len([kind for kind, _ in listeners.prompt if kind == "human"]) == 3
    assert "out of view: m1" in last_receipt(tmp_path, graph, thread()).events[0]
    check(tmp_path, graph, listeners)
    session = get_session(graph, thread())
    assert SECRET in kept(tmp_path, session).originals(session)[0].text


@pytest.mark.slow
def test_a_message_that_was_recalled_is_removed(tmp_path: Path, listeners: Listeners) -> None:
    graph = open_graph(tmp_path, listeners.roles, window=20_000, visible_messages=20)
    begin(graph)
    say(graph, HumanMessage(chatter("茶", 3)), keep=2)
    assert listeners.prompt[-1][1].count(SECRET) == 1, "a note quotes it"
    say(graph, RemoveMessage(id="u1"), HumanMessage("还有呢？"))
    assert SECRET not in repr(listeners.prompt)
    check(tmp_path, graph, listeners)


@pytest.mark.slow
def test_all_are_removed_whatever_the_channel_showed(tmp_path: Path, listeners: Listeners) -> None:
    graph = open_graph(tmp_path, listeners.roles)
    begin(graph, keep=2, rounds=6)
    graph.update_state(thread(), {"messages": [ALL]})
    shown = say(graph, HumanMessage("从头来", id="new"))
    assert texts(shown) == ["从头来", "All right, noted."]
    assert [text.split("\n")[-1] for kind, text in listeners.prompt if kind != "system"] == [
        "从头来"
    ]
    check(tmp_path, graph, listeners)


@pytest.mark.slow
def test_all_are_removed_by_an_input_alone(tmp_path: Path, listeners: Listeners) -> None:
    graph = open_graph(tmp_path, listeners.roles)
    begin(graph, keep=2, rounds=6)
    assert say(graph, ALL) == []
    shown = say(graph, HumanMessage("从头来"))
    assert texts(shown) == ["从头来", "All right, noted."]
    check(tmp_path, graph, listeners)


@pytest.mark.parametrize("cleared", [False, True])
def test_the_first_message_is_removed_whose_turn_failed(
    tmp_path: Path, listeners: Listeners, cleared: bool
) -> None:
    graph = open_graph(tmp_path, listeners.roles, reply_attempts=1)
    before: list[Any] = [ALL] if cleared and begin(graph) else []
    listeners.all[0].script.append(RuntimeError("overloaded"))
    with pytest.raises(ReplyError):
        say(graph, *before, HumanMessage(f"茶：{SECRET}", id="u9"))
    shown = say(graph, RemoveMessage(id="u9"), HumanMessage("还有呢？"))
    assert texts(shown) == ["还有呢？", "All right, noted."]
    assert SECRET not in repr(listeners.prompt)


@pytest.mark.slow
@pytest.mark.parametrize("ids", [True, False])
def test_a_client_that_sends_all_again(tmp_path: Path, listeners: Listeners, ids: bool) -> None:
    graph = open_graph(tmp_path, listeners.roles)
    begin(graph, keep=2, rounds=6)
    session = get_session(graph, thread())
    whole = [m.message for m in kept(tmp_path, session).messages(session)]
    again = [m if ids else m.model_copy(update={"id": None}) for m in whole]
    say(graph, ALL, *again, HumanMessage("还有呢？"))
    session = get_session(graph, thread())
    assert session.count == 14  # nothing twice
    again = [m for m in again if SECRET not in get_text(m)]
    say(
        graph,
        ALL,
        *again,
        HumanMessage("还有呢？"),
        AIMessage("All right, noted."),
        HumanMessage("好"),
    )
    store = kept(tmp_path, get_session(graph, thread()))
    said = store.messages(get_session(graph, thread()))
    assert texts(m.message for m in said) == [
        *texts(again),
        "还有呢？",
        "All right, noted.",
        "好",
        "All right, noted.",
    ]
    check(tmp_path, graph, listeners)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [None, 2])
def test_a_reply_that_is_changed(tmp_path: Path, listeners: Listeners, keep: int | None) -> None:
    listeners.all[0].script = [f"noted {SECRET}"]
    graph = open_graph(tmp_path, listeners.roles)
    begin(graph, keep=keep)
    reply = graph.get_state(thread()).values["messages"][1]
    assert SECRET in reply.text
    graph.update_state(thread(), {"messages": [AIMessage("EDITED", id=reply.id)]})
    graph.update_state(thread(), {"messages": [RemoveMessage(id="u1")]})
    say(graph, HumanMessage("还有呢？"))
    session = get_session(graph, thread())
    said = kept(tmp_path, session).messages(session)
    assert (said[0].id, said[0].text) == ("m2", "EDITED")
    if keep is None:
        assert [t for k, t in listeners.prompt if k == "ai"] == ["EDITED", "All right, noted."]
    assert "m2 changed" in last_receipt(tmp_path, graph, thread()).events[0]
    check(tmp_path, graph, listeners)


@pytest.mark.slow
@pytest.mark.parametrize("keep", [None, 0])
def test_a_message_that_is_said_anew(
    tmp_path: Path, listeners: Listeners, keep: int | None
) -> None:
    graph = open_graph(tmp_path, listeners.roles, window=2_400)
    for n in range(2):
        say(graph, HumanMessage(chatter("山", n)), keep=keep)
    listeners.all[0].script = [f"noted {SECRET}"]
    say(graph, HumanMessage(f"茶：{SECRET}", id="u"))
    shown = say(graph, HumanMessage("茶：不说了", id="u"))
    assert SECRET not in repr(listeners.prompt), "nor what was answered to it"
    assert texts(shown)[-2:] == ["茶：不说了", "All right, noted."]
    assert SECRET not in repr(shown)
    assert "said anew" in last_receipt(tmp_path, graph, thread()).events[0]
    said = [text for kind, text in listeners.prompt if kind == "human"]
    assert len(said) == 3 if keep is None else len(said) == 2
    assert said[-1].startswith("茶：不说了")
    say(graph, HumanMessage("茶：不说了", id="u"), HumanMessage("好"))  # the same again: no edit
    assert not last_receipt(tmp_path, graph, thread()).events
    check(tmp_path, graph, listeners)


def test_edits_while_a_turn_waits_for_a_person(tmp_path: Path, listeners: Listeners) -> None:
    def book(hotel: str) -> str:
        """Book a hotel."""
        return str(interrupt(hotel))

    graph = open_graph(tmp_path, listeners.roles, tools=[book])
    say(graph, HumanMessage(f"茶：{SECRET}", id="u0"))
    listeners.all[0].script.append(make_tool_call("book", {"hotel": "Oak"}))
    say(graph, HumanMessage("订酒店。", id="u1"))
    graph.update_state(thread(), {"messages": [RemoveMessage(id="u0")]})
    assert graph.get_state(thread()).next == ("tools",)
    shown = say(graph, HumanMessage("不订了。", id="u1"))
    assert texts(shown) == ["All right, noted.", "不订了。", "All right, noted."]
    assert [kind for kind, _ in listeners.prompt] == ["system", "human", "ai", "human"]
    assert SECRET not in repr(listeners.prompt)


@pytest.mark.slow
def test_a_branch_from_before_the_edit_shows_the_original(
    tmp_path: Path, listeners: Listeners
) -> None:
    graph = open_graph(tmp_path, listeners.roles)
    begin(graph, keep=2)
    before = graph.get_state(thread()).config
    say(graph, RemoveMessage(id="u1"), HumanMessage("还有呢？"))
    graph.invoke({"messages": [HumanMessage("茶：再说一遍")]}, before)
    assert SECRET in repr(listeners.prompt)
    session = get_session(graph, thread())
    check_kept(kept(tmp_path, session), session)


@pytest.mark.slow
def test_what_the_graph_prunes_is_no_edit(tmp_path: Path, listeners: Listeners) -> None:
    saver = InMemorySaver()
    for visible in (4, 1, 6):
        graph = open_graph(tmp_path, listeners.roles, checkpointer=saver, visible_messages=visible)
        for n in range(6):
            say(graph, HumanMessage(chatter("茶山"[n % 2], n)), keep=4 if n == 3 else None)
    session = get_session(graph, thread())
    assert session.superseded is None
    assert len(kept(tmp_path, session).messages(session)) == 36


def test_edits_that_are_ignored(tmp_path: Path, listeners: Listeners) -> None:
    graph = open_graph(tmp_path, listeners.roles, on_edit="ignore")
    begin(graph)
    say(graph, RemoveMessage(id="u1"), HumanMessage("还有呢？"))
    assert SECRET in repr(listeners.prompt)
    assert get_session(graph, thread()).superseded is None


@pytest.mark.slow
@pytest.mark.parametrize("keep", [None, 2])
def test_edits_that_purge(tmp_path: Path, listeners: Listeners, keep: int | None) -> None:
    graph = open_graph(tmp_path, listeners.roles, on_edit="purge")
    begin(graph, keep=keep)
    say(graph, HumanMessage("茶：不说了", id="u1"), HumanMessage("好"))
    assert "茶：不说了" in repr(listeners.prompt) or keep
    files = "".join(p.read_text("latin-1") for p in tmp_path.rglob("*") if p.is_file())
    assert SECRET not in files
    session = get_session(graph, thread())
    assert kept(tmp_path, session).messages(session)[0].text == "茶：不说了"
    check(tmp_path, graph, listeners)


@pytest.mark.slow
def test_what_is_in_topics_stays_there_where_all_behind_it_is_removed(
    tmp_path: Path, listeners: Listeners
) -> None:
    graph = open_graph(tmp_path, listeners.roles)
    shown = begin(graph, keep=0, rounds=4)
    tail = get_session(graph, thread()).tail
    stored = kept(tmp_path, get_session(graph, thread()))
    late = {m.source for m in stored.messages(get_session(graph, thread()), tail)}
    gone = [RemoveMessage(id=m.id) for m in shown if m.id in late]
    say(graph, *gone, keep=0, answer=False)
    assert get_session(graph, thread()).tail >= tail
    say(graph, HumanMessage("茶呢？"), keep=0)
    session = get_session(graph, thread())
    check_kept(kept(tmp_path, session), session)


@pytest.mark.parametrize("last", [HumanMessage("茶：不说了", id="u1"), RemoveMessage(id="u1")])
def test_edits_that_purge_what_was_edited_before(
    tmp_path: Path, listeners: Listeners, last: BaseMessage
) -> None:
    graph = open_graph(tmp_path, listeners.roles, on_edit="purge", visible_messages=20)
    begin(graph)
    say(graph, HumanMessage("茶：XOTHERX", id="u1"), HumanMessage("好"))
    say(graph, last, HumanMessage("好的"))
    files = "".join(p.read_text("latin-1") for p in tmp_path.rglob("*") if p.is_file())
    assert "XOTHERX" not in files
    shown = texts(graph.get_state(thread()).values["messages"])
    assert ("茶：不说了" in shown) == isinstance(last, HumanMessage)
