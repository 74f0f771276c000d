"""Needles: a thing with a special number, word or identifier, said once."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass
from typing import Literal

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
    """What stands in the haystack."""
    question: str
    value: str
    """The answer."""


def needles(draw: random.Random, kind: NeedleKind, count: int) -> list[Needle]:
    """Needles of different things.

    Args:
        draw: Where chance comes from.
        kind: Seven digits, two words with a hyphen, or a UUID.
        count: How many.

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
