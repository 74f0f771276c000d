"""A message that was removed on purpose stays away, though the channel still shows it."""

from __future__ import annotations

from pathlib import Path

from langgraph.checkpoint.memory import InMemorySaver
from sessions import chatter, check_kept, kept, open_graph, tell, thread

from topicloom.graph.stored import get_session
from topicloom.state.stored_message import REMOVED


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
