"""Waking topics by rank: one way for all who find some."""

from __future__ import annotations

from collections.abc import Container, Mapping

from topicloom.state.activation import ActivationPolicy, admit
from topicloom.state.lifecycle import woken
from topicloom.state.session import Session, Turn
from topicloom.storage.sessions import SessionStore


def wake(
    store: SessionStore,
    session: Session,
    turn: Turn,
    relevance: Mapping[str, float],
    policy: ActivationPolicy,
    *,
    asked: Container[str] = (),
) -> tuple[Session, Turn]:
    """Wake topics, as far as there is room for them; others may fall asleep for it.

    Args:
        store: The session's storage.
        session: With the topics that are active already.
        turn: The turn so far.
        relevance: Relevance of topics, 0 to 1.
        policy: The grey scale.
        asked: Topics that the user asked for: nothing else revives archived ones.

    Returns:
        The session with the topics, and the turn that says which woke and fell asleep, and that
        those that woke have to be read.

    Raises:
        TransitionError: If a topic cannot wake.
    """
    result = admit(session.active, relevance, policy)
    rows = {t: store.roster(session)[t] for t in result.woken}
    awake = {t: woken(row, session.active, asked=t in asked) for t, row in rows.items()}
    session = store.save_topics(session, [awake[t] for t, row in rows.items() if awake[t] != row])
    return session.model_copy(update={"active": result.active}), turn.model_copy(
        update={
            "unread": result.woken,
            "woken": (*turn.woken, *result.woken),
            "slept": (*turn.slept, *result.slept),
        }
    )
