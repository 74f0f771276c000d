"""Haystacks: sentences without end, and passages made of them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Annotated, Literal

from pydantic import Field, validate_call

from topicloom import count_budget_tokens
from topicloom_app.recordings.conversations import Conversation, Question, RecordedMessage
from topicloom_lab.generators.spec import make_chat

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
    """Sentences of small stories; they hardly repeat within a million tokens."""
    while True:
        who, did, what = draw.choice(_WHO), draw.choice(_DID), draw.choice(_WHAT)
        when, why = draw.choice(_WHEN), draw.choice(_WHY)
        first, rest = draw.choice(((when, f"{who} {did} {what}"), (who, f"{did} {what} {when}")))
        comma = "," if first == when else ""
        yield f"{first[0].upper()}{first[1:]}{comma} {rest} {why}."
        if draw.random() < 0.25:
            yield draw.choice(_ASIDE)


def passages(sentences: Iterator[str], tokens: int) -> Iterator[list[str]]:
    """Runs of sentences that come to about so many tokens each, by `count_budget_tokens`."""
    while True:
        run, size = list[str](), 0
        while size < tokens:
            run.append(next(sentences))
            size += count_budget_tokens(run[-1])
        yield run


NeedleKind = Literal["number", "word", "uuid"]

_FIRST = (
    "amber,brisk,calm,distant,eager,faded,gentle,hollow,idle,jolly,keen,lofty,mellow,narrow,"
    "orderly,patient,quaint,rustic,silent,tidy,upright,velvet,wistful,young,zealous,ancient,bold,"
    "crimson,dusty,early,frozen,golden,hidden,ivory,jagged,lonely,misty,noble,opal,plain"
).split(",")
_SECOND = (
    "anchor,badger,candle,dolphin,ember,falcon,glacier,hammer,island,jacket,kettle,lantern,meadow,"
    "needle,otter,pebble,quarry,ribbon,saddle,thimble,umbrella,violin,walnut,yarrow,zither,acorn,"
    "barrel,compass,drummer,engine,ferry,goblet,harvest,inkwell,jasmine,ladder,marble,nutmeg,"
    "orchard,pendulum,quiver,rudder,sparrow,trumpet,valley,whistle,almond,bridge,copper,thistle"
).split(",")
_NAMES = {"number": "number", "word": "word", "uuid": "identifier"}


@dataclass(frozen=True, slots=True)
class Needle:
    """One needle."""

    sentence: str
    """The contents of the haystack."""
    question: str
    value: str
    """The answer."""


def needles(draw: random.Random, kind: NeedleKind, count: int) -> list[Needle]:
    """Needles of different things: seven digits, two words with a hyphen, or a UUID.

    Raises:
        ValueError: If there are not as many things to name.
    """
    every = [f"{a} {b}" for a in _FIRST for b in _SECOND]
    keys = draw.sample(every, count)
    return [_needle(key, _NAMES[kind], _value(draw, kind)) for key in keys]


def _needle(key: str, name: str, value: str) -> Needle:
    return Needle(
        sentence=f"The special {name} of the {key} is: {value}.",
        question=f"What is the special {name} of the {key}, as told in the text?",
        value=value,
    )


def _value(draw: random.Random, kind: NeedleKind) -> str:
    if kind == "number":
        return str(draw.randint(1_000_000, 9_999_999))
    if kind == "word":
        return f"{draw.choice(_FIRST)}-{draw.choice(_SECOND)}"
    return str(uuid.UUID(int=draw.getrandbits(128), version=4))


_INTRODUCTION = "Something special is hidden in this text; I shall ask you about it afterwards."


@validate_call
def sniah(
    *,
    needle: NeedleKind = "number",
    haystack: Literal["noise", "prose"] = "noise",
    tokens: Annotated[int, Field(ge=100, le=10_000_000)] = 100_000,
    depths: Annotated[int, Field(ge=1, le=1_000)] = 40,
    form: Literal["chat", "prompt"] = "chat",
    message: Annotated[int, Field(ge=20, le=100_000)] = 200,
    together: bool = False,
    seed: int = 0,
) -> Iterator[Conversation]:
    """Needles in haystacks: a conversation and a question for each depth.

    Args:
        needle: What is hidden.
        haystack: A few sentences over and over, or small stories.
        tokens: Length of the haystack, by `count_budget_tokens`.
        depths: At how many places, evenly from the beginning (0) to the end (1).
        form: Many messages, or one long message.
        message: Tokens of a message of the chat.
        together: Hide all needles in one haystack: a replay for all depths, and harder, since
            every needle but one is a wrong one.
        seed: Where chance begins.

    Yields:
        Conversations whose questions have the depth as their category (`0.500`) and the message
        with the needle as evidence.
    """
    draw = random.Random(f"sniah-{needle}-{haystack}-{seed}")
    count = max(1, round(tokens / message))
    hidden = [
        _Hidden(one, share, place=round(share * (count - 1)))
        for one, share in zip(needles(draw, needle, depths), _shares(depths), strict=True)
    ]
    for number, group in enumerate([hidden] if together else [[h] for h in hidden], start=1):
        sentences = noise() if haystack == "noise" else prose(random.Random(draw.random()))
        texts = _texts(islice(passages(sentences, message), count), group)
        yield Conversation(
            id=f"sniah-{needle}-{haystack}-{tokens}-{seed}-{number}",
            messages=tuple(make_chat(texts)) if form == "chat" else (_whole(texts),),
            questions=tuple(_question(h, h.place + 1 if form == "chat" else 1) for h in group),
        )


@dataclass(frozen=True, slots=True)
class _Hidden:
    """A needle and where it is."""

    needle: Needle
    depth: float
    """0 for the beginning, 1 for the end."""
    place: int
    """Number of its passage, from 0."""


def _shares(depths: int) -> list[float]:
    return [i / (depths - 1) for i in range(depths)] if depths > 1 else [0.5]


def _texts(runs: Iterator[list[str]], group: Sequence[_Hidden]) -> Iterator[str]:
    """Passages, with needles in the middle of those that have some."""
    for number, run in enumerate(runs):
        middle = len(run) // 2
        sentences = [h.needle.sentence for h in group if h.place == number]
        yield " ".join([*run[:middle], *sentences, *run[middle:]])


def _whole(texts: Iterator[str]) -> RecordedMessage:
    return RecordedMessage(id="u1", role="user", text="\n".join([_INTRODUCTION, *texts]))


def _question(hidden: _Hidden, message: int) -> Question:
    return Question(
        id=f"depth-{hidden.depth:.3f}",
        category=f"{hidden.depth:.3f}",
        question=hidden.needle.question,
        answer=hidden.needle.value,
        evidence=(f"u{message}",),
    )
