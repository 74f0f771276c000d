"""References: a round that belongs to several topics is stored in one; the others refer to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from topicloom.state.dividing import find_preceding
from topicloom.state.rounds import Round
from topicloom.state.splitting import Portion
from topicloom.state.topic_ranges import Range

MAX_SHOWN = 8
"""References of a topic that its reader is shown at most: the newest ones."""
SIZE_DIVISOR = 32
"""A round is referred to if it is no larger than this part of what a topic may have, so that all
references together take no more than a quarter of it."""


def own_room(room: int, references: Sequence[Range]) -> int:
    """Of the tokens that a topic may have, those for its own messages: references need theirs."""
    return room - room * MAX_SHOWN // SIZE_DIVISOR if references else room


def collect_references(
    portion: Portion, owner: str, small: Iterable[Round], ids: Mapping[str, str]
) -> dict[str, list[Range]]:
    """References to the rounds of a portion, by the topic that gets them; `owner` has the rounds.

    Only `small` rounds are shown twice. `ids` of topics are by what they are called: ids and names.
    """
    found: dict[str, list[Range]] = {}
    for round_ in small:
        for topic in filter(None, map(ids.get, portion.also.get(round_.first, ()))):
            if topic != owner:
                found.setdefault(topic, []).append((round_.first, round_.last))
    return found


def select_newest(references: Sequence[Range]) -> list[Range]:
    """The references that a reader is shown: the newest, between half of `MAX_SHOWN` and all of it.

    They are dropped by halves, so that the prompt loses its prefix once in several splits.
    """
    step = MAX_SHOWN // 2
    over = max(0, len(references) - MAX_SHOWN)
    return list(references[-(-over // step) * step :])


def distribute_references(
    references: Sequence[Range], parts: Mapping[str, Sequence[Round]]
) -> dict[str, list[Range]]:
    """Give the references of a divided topic to its parts: each to the one that was on before it.

    They come in order; `parts` holds the rounds of each part, by topic, and is not empty.
    """
    ids = list(parts)
    owners = sorted((b.first, place) for place, i in enumerate(ids) for b in parts[i])
    found: dict[str, list[Range]] = {}
    for reference in references:
        found.setdefault(ids[find_preceding(owners, reference[0])], []).append(reference)
    return found
