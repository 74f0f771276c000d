"""The gap before a message as numbers, once the conversation has gone on.

These features come on top of the causal ones (`features.py`). A gap `g` of width `w` compares the
`w` messages before it with the `w` from it on.

| feature | what it is |
|---|---|
| `gap1` to `gap10` | cosine of the mean vectors on either side |
| `gap3_z` | `gap3` in spreads from its mean over the conversation |
| `depth2` to `depth4` | depth of a gap's cosine under the tops within five places (Hearst, 1997) |
| `depth*_z`, `depth*_rank` | the same in spreads, and the share of gaps that are no deeper |
| `after*`, `before*` | mean similarity within the 3 or 6 messages on a side, less that across |
| `next1` to `next3` | similarity of the message to those that follow |
| `bridge` | similarity of the message before to the one after |
| `global` | mean similarity of all pairs up to 24 apart, which says how alike the topics are |
| `cue.next` | a cue of the message that follows |
| `side_known` | `side`, from however far back the start is |
| `left` | messages that follow, up to 12, as a share: the last ones rarely open a topic |
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topicloom.topics.boundary_cues import CUE_NAMES, Utterance, asking_side
from topicloom.topics.boundary_features import (
    CHANNELS,
    ONLINE_NAMES,
    REACH,
    Features,
    cue_table,
    online_features,
)
from topicloom.topics.similarity import SOFT, Band, Floats, lagged, mean_known

_WIDTHS = (1, 2, 3, 4, 6, 10)
_DEPTHS = (2, 3, 4)
_COHESIONS = (3, 6)
_TOPS_WITHIN = 5
"""Places on either side where the top of a valley is looked for."""
_LEFT = 12
FOLLOWING_NAMES = (*(f"{name}.next" for name in CUE_NAMES), "side_known", "left")
"""Columns of `following_features`, in order."""
GAP_NAMES = (
    *(f"gap{width}" for width in _WIDTHS),
    "gap3_z",
    *(f"depth{width}{what}" for what in ("", "_z", "_rank") for width in _DEPTHS),
    *(f"{side}{width}" for side in ("before", "after") for width in _COHESIONS),
    *("next1", "next2", "next3", "bridge", "global"),
)
"""Columns of `gap_features`, in order."""
RETROSPECTIVE_NAMES = (
    *ONLINE_NAMES,
    *FOLLOWING_NAMES,
    *(f"{channel}.{name}" for channel in CHANNELS for name in GAP_NAMES),
)
"""Columns of `retrospective_features`, in order."""


def retrospective_features(said: Sequence[Utterance], band: Band) -> Features:
    """Causal features of every message and those of the gap before it; see `online_features`."""
    online = online_features(said, band)
    blocks = online.values, following_features(said), *gap_features(band)
    return Features(np.concatenate(blocks, axis=1), online.cjk)


def following_features(said: Sequence[Utterance]) -> Floats:
    """The features [n, f] of a gap that need no vectors, `FOLLOWING_NAMES`."""
    left = len(said) - 1 - np.arange(len(said))
    columns = (
        _ahead(cue_table(said).T, 1),
        asking_side(said, len(said))[None],
        np.minimum(left, _LEFT)[None] / _LEFT,
    )
    return np.concatenate(columns).T


def gap_features(band: Band) -> Floats:
    """The features [channels, n, f] of a gap that are made from similarities, `GAP_NAMES`."""
    count = band.products.shape[1]
    place = np.arange(count)
    widths = np.array(_WIDTHS)[:, None]
    start, stop = np.maximum(place - widths, 0), np.minimum(place + widths, count)
    gap = band.gap(start, np.broadcast_to(place, start.shape), stop)
    cosine = gap.cosine
    depth = _depth(cosine[:, [_WIDTHS.index(width) for width in _DEPTHS]])
    cohesions = [_WIDTHS.index(width) for width in _COHESIONS]
    similar = band.before(REACH)
    alike = mean_known(similar.reshape(len(similar), -1))
    rows = (
        cosine,
        _standard(cosine[:, [_WIDTHS.index(3)]]),
        *(depth, _standard(depth), _rank(depth)),
        *(side[:, cohesions] for side in gap.cohesion),
        *(_ahead(similar[..., lag - 1], lag)[:, None] for lag in (1, 2, 3)),
        _ahead(similar[..., 1], 1)[:, None],
        np.broadcast_to(alike[:, None, None], (len(similar), 1, count)),
    )
    return np.concatenate(rows, axis=1).swapaxes(1, 2)


def _depth(gap: Floats) -> Floats:
    """Height [..., n] of the tops on either side over a gap, both added up.

    A gap is its own least top.
    """
    before, after = lagged(gap, _TOPS_WITHIN), lagged(gap[..., ::-1], _TOPS_WITHIN)[..., ::-1, :]
    left = np.fmax(gap, np.fmax.reduce(before, axis=-1))
    right = np.fmax(gap, np.fmax.reduce(after, axis=-1))
    return np.asarray(left + right - 2 * gap, dtype=np.float64)


def _ahead(values: Floats, steps: int) -> Floats:
    """Values [..., n] of the message `steps` further on."""
    found = np.full(values.shape, np.nan)
    found[..., : max(values.shape[-1] - steps, 0)] = values[..., steps:]
    return found


def _standard(values: Floats) -> Floats:
    mean = mean_known(values)[..., None]
    return (values - mean) / (np.sqrt(mean_known((values - mean) ** 2))[..., None] + SOFT)


def _rank(values: Floats) -> Floats:
    """Share [..., n] of the known values of a row that are not above each."""
    return np.asarray(np.apply_along_axis(_rank_of, -1, values), dtype=np.float64)


def _rank_of(values: Floats) -> Floats:
    known = np.sort(values[~np.isnan(values)])
    share = np.searchsorted(known, values, side="right") / max(len(known), 1)
    return np.where(np.isnan(values), np.nan, share)
