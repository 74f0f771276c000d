"""Tips of branches on every kind of storage: what others did is seen, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from topicloom import ConflictError, Receipt, Session, SessionStore, Storage, StoredMessage
from topicloom.storage.session_merging import find_missing, merge_sessions
from topicloom.storage.writers import (
    Tip,
    catch_up,
    choose_branch,
    come_behind,
    find_concurrent,
    gather,
    give_way,
    publish,
    read_tips,
    set_aside,
    write_tip,
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


def end_turn(store: SessionStore, session: Session, others: int) -> tuple[list[str], bool]:
    """The texts after a turn while so many turns of others end, and whether it is alone then."""
    base, left = session, list(range(others))

    def close(session: Session) -> tuple[Session, str]:
        if left:
            publish(store, turn(store, base, f"theirs {left.pop(0)}"))
        return turn(store, session, "mine"), "closed"

    def come_behind_them(session: Session, tips: Sequence[Tip]) -> Session:
        return come_behind(store, session, tips)[0]

    closed, result, alone = write_tip(store, session, close, come_behind_them)
    assert result == "closed"
    return texts(store, closed), alone


def test_a_writer_gives_way_until_it_is_alone(reopen: Reopen) -> None:
    store = open_store(reopen)
    first = turn(store, Session(id="s"), "a")
    publish(store, first)
    said, alone = end_turn(store, first, 3)
    assert alone
    assert sorted(said) == ["a", "mine", "theirs 0", "theirs 1", "theirs 2"]
    assert [texts(store, tip.session) for tip in read_tips(store)] == [said], "one tip is left"


def test_a_writer_does_not_give_way_for_ever(reopen: Reopen) -> None:
    store = open_store(reopen)
    first = turn(store, Session(id="s"), "a")
    publish(store, first)
    said, alone = end_turn(store, first, 99)
    assert not alone
    assert "mine" in said
    caught_up = texts(store, catch_up(store, first))
    assert {"a", "mine", *said} <= set(caught_up), "whoever goes on takes over what is left"


def test_a_turn_that_changes_nothing_writes_nothing(reopen: Reopen) -> None:
    store = open_store(reopen)
    first = turn(store, Session(id="s"), "a")
    session, result, alone = write_tip(store, first, lambda s: (s, 1), lambda s, _: s)
    assert (session, result, alone) == (first, 1, True)
    assert read_tips(store) == []


def test_a_writer_whom_others_came_before(reopen: Reopen) -> None:
    store = open_store(reopen)
    first = turn(store, Session(id="s"), "a")
    mine, theirs = turn(store, first, "mine"), turn(store, first, "theirs")
    publish(store, theirs)
    others = find_concurrent(store, mine)
    merged, taken = give_way(store, mine, others, "merge", "s")
    assert sorted(texts(store, merged)) == ["a", "mine", "theirs"]
    assert [count for count, _ in taken] == [1]
    apart, nothing = give_way(store, mine, others, "branch", "s")
    assert (texts(store, apart), nothing) == (["a", "mine"], [])
    assert apart.branch == f"s/{mine.transcript}"
    with pytest.raises(ConflictError, match="another writer"):
        give_way(store, mine, others, "raise", "s")
    assert len(read_tips(store)) == 2, "what was said is kept"


@pytest.mark.parametrize(
    ("session", "thread", "fork", "part", "branch"),
    [
        pytest.param(Session(id="s"), "s", "", "", "", id="the thread itself"),
        pytest.param(Session(id="s"), "s", "f", "", "s/f", id="a fork"),
        pytest.param(Session(id="s"), "copy", "", "", "copy/", id="a copy of the thread"),
        pytest.param(Session(id="s"), "s", "", "node", "s/node", id="a part of another graph"),
        pytest.param(Session(id="s", branch="s/f"), "s", "", "", "s/f", id="goes on with a fork"),
        pytest.param(Session(id="s", branch="s/f"), "copy", "", "", "copy/", id="a copied fork"),
    ],
)
def test_the_branch_of_a_run(
    session: Session, thread: str, fork: str, part: str, branch: str
) -> None:
    assert choose_branch(session, thread, fork, part).branch == branch
