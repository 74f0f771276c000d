"""file: the messages of archived topics go to the archive, those of revived ones come back.

It comes after the turn that archived them, and looks at all topics: what a crash left undone in
between is done by the next review.
"""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.errors import StorageError
from topicloom.nodes.review.desk import ReviewDesk
from topicloom.nodes.step import Update, node
from topicloom.state.review_channels import ReviewState
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore


def file(desk: ReviewDesk) -> Runnable[ReviewState, Update]:
    """The node that puts messages where they belong; what is damaged stays and is told."""

    def step(state: ReviewState) -> Step[Update]:
        sight = yield from desk.door.look(state["thread"])
        store = desk.store(sight.session.id)
        filed: list[str] = []
        troubles: list[str] = []
        for topic in store.roster(sight.session):
            try:
                filed += _filed(store, topic)
            except StorageError as error:
                troubles.append(f"{topic.id} stays where it is: {error}")
        return {"filed": filed, "troubles": [*troubles, *store.new_reports()]}

    return node(step, "file")


def _filed(store: SessionStore, topic: Topic) -> list[str]:
    """The topic's id, if its messages had to move."""
    if topic.status not in ("archived", "open") or topic.head is None:
        return []
    card = store.archived(topic)
    if topic.status == "open":
        if card is None:
            return []
        store.restore(topic)
        return [topic.id]
    if card is not None and card.month == topic.archived and topic.head in card.refs:
        return []
    store.archive(topic, topic.archived)
    return [topic.id]
