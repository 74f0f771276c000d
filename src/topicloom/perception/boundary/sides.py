"""Who speaks: the same side as a message before, and the side that tends to bring topics up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topicloom.perception.boundary.lags import Floats, lagged
from topicloom.perception.boundary.said import Said

ASKING_ROLE = "user"
_UNKNOWN = -1.0


def same_side(said: Sequence[Said], reach: int, first: int = 0) -> NDArray[np.bool_]:
    """Whether each message before is of the same side [n - first, reach], from `first` on.

    Column `k - 1` is for lag k. A side is a speaker or, where no name is known, a role. Where
    neither is known two speakers are taken to alternate, counted back from the message, so that no
    earlier start is needed.
    """
    codes = _codes(said)
    now, before = codes[first:, None], lagged(codes, reach, first)
    alternate = np.arange(1, reach + 1) % 2 == 0
    known = (now != _UNKNOWN) & (before != _UNKNOWN)
    return np.asarray(np.where(known, before == now, alternate), dtype=np.bool_)


def asking_side(said: Sequence[Said], reach: int, first: int = 0) -> Floats:
    """1 [n - first] for the side that brings topics up, -1 for the other, 0 where it is not known.

    A role tells: the user asks, everyone else answers. Without roles it is the side that spoke
    first, as far as the start of the conversation is fewer than `reach` messages back.
    """
    return np.array([_asks(said, place, reach) for place in range(first, len(said))])


def _asks(said: Sequence[Said], place: int, reach: int) -> float:
    message = said[place]
    if message.role is not None:
        return 1.0 if message.role == ASKING_ROLE else -1.0
    if place >= reach:
        return 0.0
    side = _side(message)
    opened = place % 2 == 0 if side is None else side == _side(said[0])
    return 1.0 if opened else -1.0


def _side(message: Said) -> str | None:
    return message.role if message.speaker is None else message.speaker


def _codes(said: Sequence[Said]) -> Floats:
    """A number [n] for each side."""
    numbers: dict[str | None, float] = {None: _UNKNOWN}
    found = [numbers.setdefault(_side(s), float(len(numbers))) for s in said]
    return np.array(found, dtype=np.float64)
