"""The search of `Memory`: over all messages of a session, without a graph."""

from __future__ import annotations

from datetime import date

from topicloom.memory.access import OpenSession
from topicloom.memory.values import FoundMessage
from topicloom.nodes.workspace import enter_all
from topicloom.search.message_search import Query
from topicloom.search.sentences import only_asks
from topicloom.search.time_expressions import Days
from topicloom.state.folding import fold
from topicloom.state.recall import parse_message_number

_EVER = Days(date.min, date.max)
_CLOSEST = 3
"""Messages that are returned where none fits."""


def search_messages(opened: OpenSession, text: str, days: Days) -> list[FoundMessage]:
    """The messages of some days that fit a text, best first.

    Those that hold the text itself come before, and of each kind those that only ask come last.
    One that is as likely to fit by chance is left out unless it holds the text itself. Where
    none fits, those that are closest in meaning are returned, marked as such.
    """
    session, store, full_index = opened
    tail = enter_all(full_index, store, session)
    asked = None if days == _EVER else days
    hits = full_index.search(Query(text, asked, include_archived=True, priced=False))
    numbers = {parse_message_number(i): weight for i, weight in hits.weights.items()}
    said = store.pick(session, numbers)
    found = [
        FoundMessage(
            said[n],
            hits.owners[f"m{n}"].replace(tail, ""),
            round(weight, 4),
            fits=f"m{n}" not in hits.doubtful or fold(text) in fold(said[n].text),
        )
        for n, weight in numbers.items()
        if n in said and said[n].day in days
    ]
    holding = {hit.message.seq for hit in found if fold(text) in fold(hit.message.text)}
    found.sort(key=lambda hit: (hit.message.seq not in holding, only_asks(hit.message.text)))
    return [hit for hit in found if hit.fits] or found[:_CLOSEST]
