"""Tips of branches on every kind of storage: what others did is seen, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from topicloom.state.receipt import Receipt
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.storage import Storage
from topicloom.storage.sessions import SessionStore
from topicloom.storage.writers import (
    find_concurrent,
    find_missing,
    gather,
    merge_sessions,
    publish,
    set_aside,
)

Reopen = Callable[[], Storage]
TIME = "2026-03-02T09:00:00+08:00"


def open_store(reopen: Reopen) -> SessionStore:
    """The session's store as another process opens it."""
    return SessionStore(reopen().open("s"))


def turn(store: SessionStore, session: Session, text: str) -> Session:
    """The session after a turn in which something was said."""
    said = StoredMessage(seq=session.count + 1, role="user", text=text, time=TIME, source=text)
    session = store.append(session, [said]).model_copy(update={"turn": session.turn + 1})
    receipt = Receipt(
        turn=session.turn, user=said.id, seconds=1.0, scores={}, started=TIME, events=(text,)
    )
    return store.add_receipt(session, receipt)


def texts(store: SessionStore, session: Session) -> list[str]:
    return [m.text for m in store.messages(session)]


def test_who_goes_on_replaces_and_who_does_not_is_concurrent(reopen: Reopen) -> None:
    store = open_store(reopen)
    first = turn(store, Session(id="s"), "a")
    publish(store, first)
    other = open_store(reopen)
    assert find_concurrent(other, first) == []
    assert [t.session for t in find_concurrent(other, Session(id="s"))] == [first]
    mine, theirs = turn(store, first, "mine"), turn(other, first, "theirs")
    publish(store, mine)
    assert [t.session for t in find_concurrent(other, theirs)] == [mine]
    publish(other, theirs)
    assert [t.session for t in find_concurrent(open_store(reopen), mine)] == [theirs]
    assert find_missing(store, theirs, mine) == other.messages(theirs)[-1:]
    merged = merge_sessions(store, mine, theirs)
    assert sorted(texts(store, merged)) == ["a", "mine", "theirs"]
    merged = turn(store, merged, "both")
    publish(store, merged)
    last = open_store(reopen)
    assert find_concurrent(last, merged) == []
    assert [t.session for t in find_concurrent(last, mine)] == [merged], "one tip is left"
    assert texts(last, merged)[-1] == "both"


def test_branches_do_not_see_each_other(reopen: Reopen) -> None:
    store = open_store(reopen)
    trunk = turn(store, Session(id="s"), "a")
    forks = [trunk.model_copy(update={"branch": f"s/{n}"}) for n in range(20)]
    publish(store, trunk)
    for n, fork in enumerate(forks):
        publish(store, turn(store, fork, f"fork {n}"))
    publish(store, turn(store, trunk, "b"))
    last = open_store(reopen)
    assert [texts(last, h.session) for h in find_concurrent(last, trunk)] == [["a", "b"]]
    tips = [find_concurrent(last, fork) for fork in forks]
    assert [len(t) for t in tips] == [0] * 4 + [1] * 16, "those of the newest.branchs are kept"


def test_what_is_gathered_without_a_checkpoint(reopen: Reopen) -> None:
    store = open_store(reopen)
    assert gather(store, "s") == Session(id="s")
    trunk = turn(store, Session(id="s"), "a")
    for n in range(2):
        publish(store, turn(store, trunk.model_copy(update={"branch": f"s/{n}"}), f"fork {n}"))
    newest = gather(open_store(reopen), "s")
    assert (newest.branch, texts(store, newest)) == ("", ["a", "fork 1"]), "there are but forks"
    publish(store, turn(store, trunk, "b"))
    publish(store, turn(store, trunk.model_copy(update={"branch": "s/2"}), "fork 2"))
    assert texts(store, gather(open_store(reopen), "s")) == ["a", "b"]
    set_aside(store, "s", find_concurrent(store, trunk))
    publish(store, turn(store, Session(id="s"), "anew"))
    both = gather(open_store(reopen), "s")
    assert (both.branch, texts(store, both)) == ("", ["a", "b", "anew"])


def test_of_two_at_once_one_sees_the_other(reopen: Reopen) -> None:
    first = turn(open_store(reopen), Session(id="s"), "a")
    publish(open_store(reopen), first)

    def end(text: str) -> tuple[Session, bool]:
        store = open_store(reopen)
        session = turn(store, first, text)
        publish(store, session)
        return session, bool(find_concurrent(store, session))

    for n in range(5):
        with ThreadPoolExecutor(2) as pool:
            (one, saw), (other, seen) = pool.map(end, [f"left {n}", f"right {n}"])
        assert saw or seen
        store = open_store(reopen)
        first = turn(store, merge_sessions(store, one, other), f"after {n}")
        publish(store, first)
    assert len(texts(open_store(reopen), first)) == 16
