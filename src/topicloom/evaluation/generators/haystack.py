"""Haystacks: sentences without end, and passages made of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle

from topicloom.context.tokens import budget_tokens

_NOISE = (
    "The lamp is on. The door is shut. The kettle is warm.",
    "Rain falls on the roof. The clock ticks on.",
)
"""Said over and over, as in RULER's noise haystack (Hsieh et al., 2024)."""

_WHO = (
    "my neighbour,the old gardener,our teacher,a young engineer,the baker,her cousin,the ferryman,"
    "a retired judge,the librarian,my brother,the conductor,a travelling doctor,the carpenter,"
    "our landlady,the astronomer,a quiet student,the harbour master,his aunt,the watchmaker"
).split(",")
_DID = (
    "repaired,described,painted,forgot,measured,borrowed,sold,photographed,carried home,praised,"
    "catalogued,misplaced,cleaned,drew a plan of,wrote about,argued over,searched for,counted,"
    "inherited,explained"
).split(",")
_WHAT = (
    "an iron stove,the garden wall,two wooden boats,a map of the coast,the church organ,"
    "old letters,a basket of pears,the village fountain,three brass lamps,a broken telescope,"
    "the winter coats,a recipe for plum cake,the water mill,some copper wire,a book on bees,"
    "the railway timetable,a set of chairs,the orchard fence,a box of tools,the stained glass"
).split(",")
_WHEN = (
    "in the early spring,after the long rain,one Tuesday,before the market opened,late at night,"
    "during the harvest,when the snow had gone,on the way to town,shortly after lunch,years ago,"
    "in the second week of June,while the others slept,at the end of the summer"
).split(",")
_WHY = (
    "because nobody else would,to please a friend,for less money than expected,without saying why,"
    "as the custom was,though it took the whole day,and was never asked about it again,"
    "which surprised the whole street,so that the children could see it,with great patience,"
    "as if there were no hurry at all,and wrote it down in a notebook"
).split(",")
_ASIDE = (
    "People still talk about it.,Nothing came of it in the end.,It was the kind of thing one "
    "remembers.,The weather had something to do with it.,There had been plans of that sort "
    "before.,Opinions on this differ.,It cost more time than money.,The rest is easily told."
).split(",")


def noise() -> Iterator[str]:
    """The same few sentences over and over."""
    return cycle(_NOISE)


def prose(draw: random.Random) -> Iterator[str]:
    """Sentences of small stories; they hardly repeat within a million tokens.

    Args:
        draw: Where chance comes from.
    """
    while True:
        who, did, what = draw.choice(_WHO), draw.choice(_DID), draw.choice(_WHAT)
        when, why = draw.choice(_WHEN), draw.choice(_WHY)
        first, rest = draw.choice(((when, f"{who} {did} {what}"), (who, f"{did} {what} {when}")))
        comma = "," if first == when else ""
        yield f"{first[0].upper()}{first[1:]}{comma} {rest} {why}."
        if draw.random() < 0.25:
            yield draw.choice(_ASIDE)


def passages(sentences: Iterator[str], tokens: int) -> Iterator[list[str]]:
    """Runs of sentences that come to about so many tokens each, by `budget_tokens`."""
    while True:
        run, size = list[str](), 0
        while size < tokens:
            run.append(next(sentences))
            size += budget_tokens(run[-1])
        yield run
