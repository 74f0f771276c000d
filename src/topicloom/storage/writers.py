"""Who wrote to a session meanwhile, and what becomes of it: decided here and nowhere else.

A checkpoint says where a run began. A *tip* is a session as a turn left it, written to storage at
the end of that turn; it says how far a branch has got. Storage cannot compare and set, so a writer
first writes its own tip and then looks for the tips of others. If two end at once, at least one of
them sees the other.

Turns and changes of memory end with `write_tip`: it writes, looks, gives way and tries again:

    def close(session): ...              # the session after the turn, and its receipt
    def give_way(session, others): ...   # the session behind the others, as `give_way` has it
    session, receipt, alone = write_tip(store, session, close, give_way)

A turn begins with `resume`, and whoever reads a session between turns calls `catch_up`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Literal, TypeVar

from topicloom.errors import ConflictError, MissingRecordError
from topicloom.state.journal import JournalEntry
from topicloom.state.session import Session
from topicloom.storage.base import TIPS, TRANSCRIPT
from topicloom.storage.session_merging import find_journal, find_missing, merge_sessions
from topicloom.storage.sessions import SessionStore

T = TypeVar("T")

_EARLIER = "/earlier/"
"""Behind a thread's name, the branch of a conversation that its checkpoints no longer know.

A checkpointer in memory loses them with its process, and a thread may be deleted there alone: what
was said before is not to turn up in the next turn, and a repair has to find it.
"""
_OTHER_BRANCHES = 16
"""Tips that are kept of other branches: forks that are gone on with once in a while."""
_ATTEMPTS = 8
"""Times that a writer gives way to others who end a turn at once."""


@dataclass(frozen=True, slots=True)
class Tip:
    """A session as a turn of it ended: the end of a branch, until a turn goes on from it."""

    ref: str
    session: Session
    time: float
    """When it was written, in seconds since the epoch, by the machine's clock: a session's own may
    go through recorded times, and does not say which of two processes came first."""


Taken = tuple[int, list[JournalEntry]]
"""What was taken over from one other writer: how many messages, and its edits of the document."""


def choose_branch(session: Session, thread: str, fork: str = "", part: str = "") -> Session:
    """The session on the branch that a run of a thread goes on with.

    A fork has a branch of its own. So has a thread that is a copy of another one, and a session
    that is a `part` of another graph.
    """
    known = session.branch.startswith(f"{thread}/")
    first = not (session.branch or part) and session.id == thread
    return session if (known or first) and not fork else branch_off(session, thread, fork or part)


def branch_off(session: Session, thread: str, name: str | None) -> Session:
    return session.model_copy(update={"branch": f"{thread}/{name}"})


def read_tips(store: SessionStore) -> list[Tip]:
    """The tips of all branches, the oldest first."""
    tips = (
        Tip(ref, Session.model_validate(row["session"]), row["time"])
        for ref, row in store.log.rows(TIPS).items()
    )
    return sorted(tips, key=lambda tip: tip.time)


def find_newest(store: SessionStore, thread: str) -> Session:
    """The session as the turn of its thread that ended last left it; a new one if none did."""
    own = _select_own(read_tips(store), f"{thread}/")
    return own[-1] if own else Session(id=thread)


def find_concurrent(
    store: SessionStore, session: Session, tips: Sequence[Tip] | None = None
) -> list[Tip]:
    """The tips of a session's branch that it does not go on from, the oldest first.

    Among all tips as they are now, unless these were read already. If there are none, another
    process may have deleted the session: nothing of it is in memory then.
    """
    tips = read_tips(store) if tips is None else tips
    newest = session.transcript
    if not tips and newest and not store.log.standing(TRANSCRIPT, [newest]):
        store.log.forget()
    return [tip for tip in tips if _is_concurrent(store, session, tip.session)]


def find_same_turn(
    store: SessionStore, session: Session, user: int, started: str, tips: Sequence[Tip]
) -> list[Tip]:
    """Those of all tips that are of the very turn that ends now: it was killed and runs again.

    It answers the message `user`, and is known by when it started.
    """

    def is_same(tip: Tip) -> bool:
        receipt, said = store.last_receipt(tip.session), store.messages(tip.session, user)
        if receipt is None or receipt.started != started or any(m.role == "user" for m in said[1:]):
            return False
        return [m.source for m in said[:1]] == [m.source for m in store.messages(session, user)[:1]]

    return [tip for tip in find_concurrent(store, session, tips) if is_same(tip)]


def write_tip(
    store: SessionStore,
    session: Session,
    close: Callable[[Session], tuple[Session, T]],
    give_way: Callable[[Session, Sequence[Tip]], Session],
    replaced: Collection[str] = (),
    tips: Sequence[Tip] | None = None,
) -> tuple[Session, T, bool]:
    """End a turn: write its session as the tip of its branch, behind what others wrote meanwhile.

    Args:
        store: The session's.
        session: The session before the turn is closed.
        close: Closes the turn: the session after it, and what else comes of it. It is called again
            behind others. The session as it was given says that there is nothing to write.
        give_way: The session where others were first.
        replaced: Tips that it takes the place of although it does not go on from them.
        tips: All tips, if they were just read.

    Returns:
        The session after the turn, what else came of it, and False if others still write: whoever
        goes on from here takes over what is left.
    """
    written, tips = list(replaced), read_tips(store) if tips is None else tips
    for _ in range(_ATTEMPTS):
        concurrent = find_concurrent(store, session, tips)
        if others := [tip for tip in concurrent if tip.ref not in written]:
            session = give_way(session, others)
        closed, result = close(session)
        if closed is session:
            return closed, result, True
        written.append(publish(store, closed, written, tips))
        tips = read_tips(store)
        if not find_concurrent(store, closed, tips):
            return closed, result, True
    return closed, result, False


def give_way(
    store: SessionStore,
    session: Session,
    others: Sequence[Tip],
    mode: Literal["merge", "raise", "branch"],
    thread: str,
) -> tuple[Session, list[Taken]]:
    """The session of a writer whom others came before, and what it took over from each of them.

    It comes behind them, stays on a branch of its own, or gives up, but keeps what was said; by the
    setting `on_conflict`.

    Raises:
        ConflictError: It gives up.
    """
    if mode == "branch":
        return branch_off(session, thread, session.transcript), []
    if mode == "merge":
        return come_behind(store, session, others)
    publish(store, session)
    raise ConflictError(
        "another writer's turn of session {session!r} ended while this one went on. What was said"
        " is kept, and the next turn goes on from both",
        session=session.id,
    )


def come_behind(
    store: SessionStore, session: Session, others: Sequence[Tip]
) -> tuple[Session, list[Taken]]:
    """The session behind what others wrote, and what it took over from each of them."""
    taken = list[Taken]()
    for tip in others:
        count, journal = session.count, find_journal(store, tip.session, session)
        session = merge_sessions(store, session, tip.session)
        taken.append((session.count - count, journal))
    return session, taken


def catch_up(store: SessionStore, session: Session) -> Session:
    """The session behind what other writers did since; all that this writes is storage."""
    others = find_concurrent(store, session) if session.count else ()
    return come_behind(store, session, others)[0]


def resume(
    store: SessionStore, session: Session, thread: str, began: float, tips: Sequence[Tip]
) -> tuple[Session, list[Taken], int]:
    """The session that a turn goes on from: its checkpoint's, behind what others wrote since.

    A thread that lost its checkpoints begins anew, and what is stored of it is set aside: the tips
    from before the run `began` to read its checkpoint, in seconds since the epoch.

    Returns:
        The session, what it took over from others, one after another, and the number of messages
        that were set aside.
    """
    others = find_concurrent(store, session, tips)
    if session.count or not (old := [tip for tip in others if tip.time < began]):
        return *come_behind(store, session, others), 0
    set_aside(store, thread, old)
    return session, [], max(tip.session.count for tip in old)


def take_back(store: SessionStore, session: Session, said: Sequence[str]) -> None:
    """Take back turns that ended in a process which was killed before a checkpoint knew them, if
    what their user `said` is sent again: nobody has seen their replies.
    """

    def is_sent_again(tip: Tip) -> bool:
        missing = find_missing(store, tip.session, session)
        texts = [message.text for message in missing if message.role == "user"]
        return bool(texts) and texts == list(said[: len(texts)])

    gone = [tip.ref for tip in find_concurrent(store, session) if is_sent_again(tip)]
    if gone:
        publish(store, session, gone)


def publish(
    store: SessionStore,
    session: Session,
    replaced: Collection[str] = (),
    tips: Sequence[Tip] | None = None,
) -> str:
    """Write a session as the tip of its branch, in the place of those that it goes on from.

    These are looked for among all tips, unless they were read already.

    Returns:
        The ref of the tip. `find_concurrent` says whether another was written meanwhile.
    """
    tips, gone = read_tips(store) if tips is None else tips, set(replaced)
    own = [tip for tip in tips if tip.session.branch == session.branch]
    others = [tip for tip in tips if tip not in own and _EARLIER not in tip.session.branch]
    passed = [tip for tip in own if not _is_concurrent(store, session, tip.session)]
    gone.update(tip.ref for tip in (*passed, *others[:-_OTHER_BRANCHES]))
    ref = _write(store, session, time.time(), gone)
    store.copy_topics(session, passed[-1].session if passed else None)
    return ref


def publish_mended(store: SessionStore, session: Session) -> None:
    """Write a session that was repaired as the tip of its branch.

    It takes the place of every tip that has no message beside its own; the next turn comes behind
    the others.
    """
    others = find_concurrent(store, session)
    publish(store, session, [t.ref for t in others if not find_missing(store, t.session, session)])


def set_aside(store: SessionStore, thread: str, tips: Sequence[Tip]) -> None:
    """Put tips that no checkpoint leads to on branches of their own, where `gather` finds them."""
    for tip in tips:
        alone = branch_off(tip.session, thread, f"{_EARLIER[1:]}{tip.session.transcript}")
        _write(store, alone, tip.time, [tip.ref])


def gather(store: SessionStore, thread: str) -> Session:
    """All that is stored of a thread as one conversation, but for forks; the newest of these if
    there is nothing else, and a new one if nothing is.

    What was set aside comes behind or before the rest as `merge_sessions` has it.
    """
    own = _select_own(read_tips(store), thread + _EARLIER) or [find_newest(store, thread)]
    whole = reduce(partial(merge_sessions, store), own)
    return whole.model_copy(update={"branch": ""})


def _select_own(tips: Sequence[Tip], prefix: str) -> list[Session]:
    """The sessions on the first branch of a thread, or on branches that begin with a prefix."""
    return [t.session for t in tips if (t.session.branch or prefix).startswith(prefix)]


def _write(store: SessionStore, session: Session, at: float, gone: Collection[str]) -> str:
    body = {"session": session.model_dump(mode="json", exclude_defaults=True), "time": at}
    return store.log.replace_rows(TIPS, body, gone)


def _is_concurrent(store: SessionStore, session: Session, tip: Session) -> bool:
    """True if a tip is of the same branch and conversation, and the session not behind it."""
    if tip.branch != session.branch:
        return False
    try:
        refs, theirs = store.transcript_refs(session), store.transcript_refs(tip)
    except MissingRecordError:  # of a storage that was put back to an earlier state
        return False
    related = not (session.turn and tip.turn) or theirs[:1] == refs[:1]
    later = tip.turn >= session.turn and tip.turns != session.turns
    return related and (later or bool(find_missing(store, tip, session)))
