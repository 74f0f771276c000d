"""Provisional topics: those that the unsplit messages of a session would make if it split now."""

from __future__ import annotations

from topicloom.graph.deps import open_adsorber
from topicloom.memory.access import OpenSession
from topicloom.roles.splitter import EmbeddedSplitter, SplitRequest
from topicloom.state.rounds import group_rounds
from topicloom.state.splitting import LOOSE_ENDS
from topicloom.state.stored_message import StoredMessage
from topicloom.topics.boundary_policy import AdsorberPolicy


def sort_unsplit(opened: OpenSession) -> dict[str, list[StoredMessage]]:
    """The unsplit messages by the name of the topic that they would open, without a model.

    What would belong to none stands last, under "".
    """
    session, store, full_index = opened
    messages, embedder = store.messages(session, session.tail), full_index.embedder
    rounds = group_rounds(messages)
    request = SplitRequest(
        session=session.id,
        rounds=rounds,
        continues=open_adsorber(AdsorberPolicy(), embedder).continuity(rounds),
        topics=(),
        affinities=None,
        active=frozenset(),
        previous=None,
        language=session.language,
    )
    sorted_: dict[str, list[StoredMessage]] = {}
    names = {a.message: a.name for a in EmbeddedSplitter(embedder).call(request).value}
    for message in messages:
        name = names.get(message.id, LOOSE_ENDS)
        sorted_.setdefault("" if name == LOOSE_ENDS else name, []).append(message)
    loose = sorted_.pop("", [])
    return sorted_ | ({"": loose} if loose else {})
