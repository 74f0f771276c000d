"""Topics in the archive and messages that are purged, in domain terms, on each kind of storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.store.memory import InMemoryStore

from topicloom import (
    FileStorage,
    Note,
    Receipt,
    Session,
    SessionStore,
    Storage,
    StoredMessage,
    StoreStorage,
    Topic,
    TopicNote,
)
from topicloom.hosting import REMOVED
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Search, SearchScope
from topicloom.state.stored_message import to_stored_message

Reopen = Callable[[], Storage]
DAYS = ("2026-03-02", "2026-03-03")


@dataclass
class Talk:
    """A session of twelve messages: six in t1, four in t2, two in the tail."""

    store: SessionStore
    session: Session
    topics: list[Topic]
    said: list[StoredMessage]


def messages() -> list[BaseMessage]:
    call = {"name": "bank", "args": {"pin": "secret 1"}, "id": "c1", "type": "tool_call"}
    return [
        HumanMessage("hello", id="a1"),
        AIMessage("hi", id="a2"),
        HumanMessage("the secret 1", id="a3", name="Ann Secret"),
        AIMessage("", id="a4", tool_calls=[call]),
        ToolMessage("secret 1 is right", tool_call_id="c1", id="a5"),
        AIMessage("done"),
        HumanMessage("tea"),
        FunctionMessage(content="green", name="shop"),
        SystemMessage("be brief"),
        AIMessage("green tea"),
        HumanMessage("bye"),
        AIMessage("good bye"),
    ]


def talk(storage: Storage) -> Talk:
    store = SessionStore(storage.open("s"))
    said = [
        to_stored_message(message, seq=seq, time=f"2026-03-{seq:02}T08:00:00+00:00")
        for seq, message in enumerate(messages(), start=1)
    ]
    session = store.append(Session(id="s", topics=2, tail=11), said)
    topics = []
    for number, part in ((1, said[:6]), (2, said[6:10])):
        topic = Topic(id=f"t{number}", name=f"secret {number}", brief=f"of secret {number}")
        session, topic = store.assign(session, topic, part)
        topics.append(topic)
    session = store.save_topics(session, topics)
    parts = tuple(
        TopicNote(topic=t.id, name=t.name, score=0.5, quotes=(quote,), summary=f"so {t.name}")
        for t, quote in zip(topics, ("m3", "m7"), strict=True)
    )
    named = tuple(t.name for t in topics)
    listed = {t.id: f"- {t.name}: {t.brief}" for t in topics}
    note = Note(after=11, topics=parts, searched="bye", candidates=named, listed=listed)
    session = store.add_note(session, note)
    scope = SearchScope(briefs=2, missed="day of the secret 1")
    session = store.add_note(session, Note(after=3, searched="the secret 1", scope=scope))
    for user, query in (("m11", "bye"), ("m3", "the secret 1")):
        of = SearchScope(briefs=2, missed=f"day of {query}")
        receipt = Receipt(
            turn=1,
            user=user,
            started="",
            seconds=1.0,
            scores={},
            quoted=parts,
            searches=(Search(query=query, when=query, days=DAYS, reason=query, scope=of),),
            events=("split m1-m6 into t1 “secret 1”", "split m7-m10 into t2 “secret 2”"),
        )
        session = store.add_receipt(session, receipt)
    return Talk(store, session, topics, said)


def again(reopen: Reopen) -> SessionStore:
    return SessionStore(reopen().open("s"))


def test_purged_messages(reopen: Reopen) -> None:
    at = talk(reopen())
    plan = at.store.plan_purge(at.session, [3, 4, 5])
    assert plan.messages == ("m3", "m4", "m5")
    assert plan.topics == ("t1",)
    assert at.store.messages(at.session) == at.said
    assert at.store.purge(plan) > 0
    assert at.store.purge(plan) == 0
    for store in (at.store, again(reopen)):
        everywhere = store.messages(at.session)
        assert store.topic_messages(at.session, at.topics[0]) == everywhere[:6]
        assert store.topic_messages(at.session, at.topics[1]) == at.said[6:10]
        assert everywhere[:2] + everywhere[5:] == at.said[:2] + at.said[5:]
        for old, new in zip(at.said[2:5], everywhere[2:5], strict=True):
            assert (new.seq, new.role, new.time, new.source) == (
                old.seq,
                old.role,
                old.time,
                old.source,
            )
            assert new.text == REMOVED
            assert type(new.message) is type(old.message)
            assert new.message.content == REMOVED
            assert new.speaker is None
        calling, result = everywhere[3].message, everywhere[4].message
        assert isinstance(calling, AIMessage)
        assert isinstance(result, ToolMessage)
        [call] = calling.tool_calls
        assert (call["name"], call["args"], call["id"]) == ("bank", {}, "c1")
        assert result.tool_call_id == "c1"
        assert len(group_rounds(everywhere)) == len(group_rounds(at.said))

        first, second = store.topic_table(at.session)
        assert (first.name, first.brief, first.count) == ("topic t1", "", 6)
        assert second == at.topics[1]
        note, asked = store.notes(at.session)
        assert [(t.name, t.summary, t.quotes) for t in note.topics] == [
            ("topic t1", "", ("m3",)),
            ("secret 2", "", ("m7",)),
        ]
        assert (note.searched, note.candidates, note.listed, asked.searched) == ("", (), {}, "")
        assert (note.scope, asked.scope) == (None, SearchScope(briefs=2))
        for receipt in store.receipts(at.session):  # both tell of t1
            assert [part.summary for part in receipt.quoted] == ["", ""]
            assert receipt.events == ()
            assert receipt.searches == (Search(query="", scope=SearchScope(briefs=2)),)
        assert store.days(at.session).keys() == {f"2026-03-{n:02}" for n in range(1, 11)}
    assert again(reopen).plan_purge(at.session, [3, 4, 5]).messages == ()


def test_a_whole_topic(reopen: Reopen) -> None:
    at = talk(reopen())
    at.store.purge(at.store.plan_purge(at.session, at.topics[1]))
    found = again(reopen).topic_messages(at.session, at.topics[1])
    assert [r.text for r in found] == [REMOVED] * 4
    assert [type(r.message) for r in found] == [type(r.message) for r in at.said[6:10]]


def test_other_branches(reopen: Reopen) -> None:
    """What branches share goes from all of them; what another said under the number stays."""
    at = talk(reopen())
    refs = at.store.transcript_refs(at.session)
    alone = {"roster": None, "ranges": None, "tail": 1}
    fork = at.session.model_copy(update={"transcript": refs[5], "count": 6, **alone})
    other = to_stored_message(HumanMessage("coffee"), seq=7, time="2026-03-07T08:00:00+00:00")
    fork = at.store.append(fork, [other])
    fork, topic = at.store.assign(fork, Topic(id="t1", name="mixed"), [*at.said[:6], other])
    fork, coffee = at.store.assign(fork, Topic(id="t9", name="coffee"), [other])
    fork = at.store.save_topics(fork, [topic, coffee])
    at.store.purge(at.store.plan_purge(at.session, [3, 7]))
    store = again(reopen)
    found = store.topic_messages(fork, topic)
    assert [r.text for r in found] == ["hello", "hi", REMOVED, "", "secret 1 is right", "done"]
    assert store.messages(fork, 7) == [other]
    assert store.message(at.session, 7).text == REMOVED
    names = {t.id: t.name for t in store.topic_table(fork)}
    assert names == {"t1": "topic t1", "t9": "coffee"}, "another message of that number stays"


@pytest.mark.parametrize("numbers", [[0], [13], [3, 99]])
def test_messages_that_are_none(reopen: Reopen, numbers: list[int]) -> None:
    at = talk(reopen())
    with pytest.raises(IndexError, match="m1 to m12"):
        at.store.plan_purge(at.session, numbers)


def written(root: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file())


def test_nothing_is_left_on_disk(tmp_path: Path) -> None:
    at = talk(FileStorage(tmp_path, fsync=False))
    at.store.copy_topics(at.session)
    assert b"secret 1" in (tmp_path / "s/topics/topic-t1.jsonl").read_bytes()
    at.store.purge(at.store.plan_purge(at.session, at.topics[0]))
    assert b"secret 1" not in written(tmp_path)
    assert b"Ann Secret" not in written(tmp_path)


def test_nothing_is_left_in_a_store() -> None:
    place = InMemoryStore()
    at = talk(StoreStorage(place))
    at.store.purge(at.store.plan_purge(at.session, at.topics[0]))
    items = place.search(("topicloom",), limit=1000)
    assert not [item for item in items if "secret 1" in str(item.value)]


def test_a_purge_that_was_killed_is_found_again(tmp_path: Path) -> None:
    at = talk(FileStorage(tmp_path, fsync=False))
    plan = at.store.plan_purge(at.session, [3])
    *before, _ = plan.entries.items()
    for chain, keep in before:
        at.store.log.purge(chain, list(keep), keep)
    store = SessionStore(FileStorage(tmp_path, fsync=False).open("s"))
    plan = store.plan_purge(at.session, [3])
    assert plan.messages == ("m3",)
    assert store.purge(plan) == 1
    assert store.message(at.session, 3).text == REMOVED
