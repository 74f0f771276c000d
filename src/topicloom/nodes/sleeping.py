"""What the local index finds in topics that nobody read."""

from __future__ import annotations

from collections.abc import Collection

from topicloom.index.time_expressions import Days
from topicloom.nodes.workspace import Workspace
from topicloom.roles.embedded.reader import read_by_worth
from topicloom.state.recall import Reading
from topicloom.state.session import Search, Turn
from topicloom.state.topics import Roster


def found_asleep(
    workspace: Workspace, roster: Roster, turn: Turn, read: Collection[str]
) -> list[Reading]:
    """Readings of topics that sleep, by what the index found for the turn.

    Waking is for topics that a conversation goes on with, and there is room for a few. An answer
    may rest on a message each of many topics: those are quoted without being woken, archived ones
    too if the user asked for what was said before.

    Args:
        workspace: With the index.
        roster: The topics.
        turn: What is looked for.
        read: Topics that were read already.
    """
    newest = turn.searches[-1] if turn.searches else Search(query=turn.query)
    hits = workspace.indexed(roster).search(
        turn.query, Days.of(newest.days), include_archived=newest.archived
    )
    topics = roster.open() + (roster.archived() if newest.archived else [])
    asleep = {topic.id for topic in topics} - set(read)
    worth: dict[str, dict[str, float]] = {}
    for message, weight in hits.weights.items():
        topic = hits.homes[message]
        if topic in asleep:
            worth.setdefault(topic, {})[message] = weight
    best = max(hits.weights.values(), default=0.0)
    return [read_by_worth(t, hits.topics[t], found, best) for t, found in worth.items()]
