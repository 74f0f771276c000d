"""Conversations made of whole dialogues that take turns in bursts and return."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

import numpy as np

from topicloom.boundary.cues import Utterance
from topicloom.training.rejoin_corpus import Dialogue, Talk

MADE, MADE_CJK = "made", "made-cjk"
"""Names of the files that made conversations count to."""

_NAMES = tuple("Anna Ben Carla David Emma Felix Grace Hugo Iris Jonas Kira Leo Mona Nils".split())
_BURSTS = (1, 2, 3, 4, 6)
"""Most rounds that are spent on a dialogue at a time: tasks that take turns, to long bursts."""
_SHORTEST = 4
"""Turns of the shortest dialogue that is used."""
_MOST_DIALOGUES, _MOST_AT_ONCE = 10, 5


def interleaved(dialogues: Sequence[Dialogue], count: int, seed: int) -> list[Talk]:
    """Make conversations, each of dialogues of one file and script; scripts take turns.

    Args:
        dialogues: What to make them of.
        count: How many.
        seed: Of all that is drawn.
    """
    pools: defaultdict[tuple[bool, str], list[Dialogue]] = defaultdict(list)
    for dialogue in dialogues:
        if len(dialogue.texts) >= _SHORTEST:
            pools[dialogue.cjk, dialogue.file].append(dialogue)
    usable: defaultdict[bool, list[list[Dialogue]]] = defaultdict(list)
    for (cjk, _), pool in sorted(pools.items(), key=lambda item: item[0]):
        if len(pool) >= _MOST_DIALOGUES:
            usable[cjk].append(pool)
    random = Random(seed)
    scripts = [usable[cjk] for cjk in sorted(usable)]
    return [
        _talk(random.choice(scripts[number % len(scripts)]), number, random)
        for number in range(count if scripts else 0)
    ]


def _talk(pool: Sequence[Dialogue], number: int, random: Random) -> Talk:
    picked = random.sample(pool, random.randint(3, _MOST_DIALOGUES))
    first, second, as_roles = _pair(random)
    said: list[Utterance] = []
    gold: list[str] = []
    vectors = []
    for which, turn in _turns([len(dialogue.texts) for dialogue in picked], random):
        voice = second if turn % 2 else first
        text = picked[which].texts[turn]
        role, speaker = (voice, None) if as_roles else (None, voice)
        said.append(Utterance(role=role, speaker=speaker, text=text, hours=None))
        gold.append(f"{picked[which].key}")
        vectors.append(picked[which].vectors[turn])
    name = MADE_CJK if pool[0].cjk else MADE
    return Talk(name, f"{name}-{number}", tuple(said), tuple(gold), np.stack(vectors))


def _pair(random: Random) -> tuple[str, str, bool]:
    """Two who talk, and whether they are roles."""
    form = random.choice(("roles", "letters", "names"))
    if form == "roles":
        return "user", "assistant", True
    first, second = ("A", "B") if form == "letters" else random.sample(_NAMES, 2)
    return first, second, False


def _turns(lengths: Sequence[int], random: Random) -> list[tuple[int, int]]:
    """Pairs of dialogue and turn, in whole rounds of two turns, until all is said."""
    longest, at_once = random.choice(_BURSTS), random.randint(2, _MOST_AT_ONCE)
    waiting, active = list(range(len(lengths))), list[int]()
    said = [0] * len(lengths)
    turns: list[tuple[int, int]] = []
    current = -1
    while waiting or active:
        current = _next(current, waiting, active, at_once, random)
        upto = min(said[current] + 2 * random.randint(1, longest), lengths[current])
        turns += [(current, turn) for turn in range(said[current], upto)]
        said[current] = upto
        if upto == lengths[current]:
            active.remove(current)
    return turns


def _next(current: int, waiting: list[int], active: list[int], at_once: int, random: Random) -> int:
    """Another dialogue to go on with, or one that begins."""
    others = [which for which in active if which != current]
    if waiting and len(active) < at_once and (not others or random.random() < 0.5):
        active.append(waiting.pop(0))
        return active[-1]
    return random.choice(others or active)
