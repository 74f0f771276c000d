"""A message that was removed on purpose stays away, though the channel still shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.sqlite.aio import AsyncSqliteStore
from sessions import chatter, check_kept, kept, open_graph, prompt_of, tell, thread

from topicloom import Call, FileStorage, Memory, get_session
from topicloom.hosting import REMOVED
from topicloom.state.session import Search
from topicloom.testing import ScriptedResponder, fake_roles


@pytest.mark.slow
def test_a_purged_message_is_not_recorded_again(tmp_path: Path) -> None:
    saver = InMemorySaver()
    graph = open_graph(tmp_path, checkpointer=saver)
    tell(graph, thread(), *(chatter("茶山"[n % 2], n, characters=150) for n in range(4)))
    session = get_session(graph, thread())
    store = kept(tmp_path, session)
    assert store.purge(store.plan_purge(session, [session.count - 1])) > 0
    later = open_graph(tmp_path, checkpointer=saver)
    tell(later, thread(), "新的问题")
    after = get_session(later, thread())
    messages = check_kept(kept(tmp_path, after), after)
    assert after.count == session.count + 2
    assert [r.text for r in messages if r.seq == session.count - 1] == [REMOVED]


def test_no_receipt_repeats_what_is_removed(tmp_path: Path) -> None:
    """Errors of providers may repeat their prompt."""
    graph = open_graph(tmp_path)
    text = "The door of the shed opens with HERON77 at dusk"
    tell(graph, thread(), text, "And now?")
    session = get_session(graph, thread())
    store = kept(tmp_path, session)
    (newest,) = store.receipts(session, 1)
    call = Call(role="reader", failure=f"BadRequestError: bad prompt: {text!r}", remarks=(text,))
    searches = (Search(query="what the door of the shed opens with", reason=text),)
    told = newest.model_copy(update={"calls": (call,), "searches": searches})
    session = store.add_receipt(session, told)
    store.purge(store.plan_purge(session, [1]))
    (left,) = store.receipts(session, 1)
    assert left.calls[0].failure == "BadRequestError: bad prompt: '…'"
    assert left.searches[0].query == "what the …"
    assert not re.search("HERON77|the shed", (tmp_path / "s" / "turns.jsonl").read_text("utf-8"))


@pytest.mark.slow
def test_who_had_it_in_memory_quotes_it_no_more(tmp_path: Path) -> None:
    saver, responder = InMemorySaver(), ScriptedResponder(otherwise=lambda _: "好的。")
    graph, other = (
        open_graph(tmp_path, fake_roles(responder), checkpointer=saver) for _ in range(2)
    )
    tell(graph, thread(), "茶：绿茶四十七元", "山：去爬山", "海：看大海", "茶：再说", keep=2)
    for each in (graph, other):
        tell(each, thread(), "茶：绿茶多少钱")
        assert "四十七元" in prompt_of(responder.requests[-1])
    Memory.of(graph, thread()).forget("m1")
    for each in (graph, other):
        assert Memory.of(each, thread()).history()[0].text == REMOVED
        tell(each, thread(), "茶：绿茶多少钱呢")
        assert "四十七元" not in prompt_of(responder.requests[-1])


@pytest.mark.slow
def test_who_had_it_in_memory_writes_it_no_more(tmp_path: Path) -> None:
    """The graph of another process splits what was removed by the storage alone."""
    graph = open_graph(tmp_path, fake_roles(responder := ScriptedResponder()))
    tell(graph, thread(), "茶：绿茶四十七元", "山：去爬山")
    Memory(FileStorage(tmp_path), "s").forget("m1")
    tell(graph, thread(), "海：看大海", keep=0)
    assert "四十七元" not in prompt_of(responder.requests[-1])
    tell(graph, thread(), "茶：绿茶多少钱", keep=0)
    assert "四十七元" not in prompt_of(responder.requests[-1])
    session = get_session(graph, thread())
    assert session.tail > 4
    check_kept(kept(tmp_path, session), session)
    assert [p for p in tmp_path.rglob("*.jsonl") if "四十七元" in p.read_text("utf-8")] == []
    assert "四十七元" not in str(graph.get_state(thread()).values)


async def test_a_message_is_forgotten_beside_a_store_that_is_asynchronous_alone(
    tmp_path: Path,
) -> None:
    async with AsyncSqliteStore.from_conn_string(":memory:") as store:
        await store.setup()
        graph = open_graph(tmp_path, store=store)
        await graph.ainvoke({"messages": [("user", "Hello boats")]}, thread())
        gone = await Memory.of(graph, thread()).aforget("m1")
        assert [m.text for m in gone.messages] == ["Hello boats"]
