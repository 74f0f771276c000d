"""A message as numbers when it arrives: the causal features. `retrospective.py` has those that need
what comes after it.

Every causal feature of a message is made from it and at most `WINDOW` messages before it, and a
message looks no further when there are more: the last of 25 messages has the same features as the
last of a million. Names are `channel.what` for similarities and `cue.what` for the rest.

There are two channels of similarity. `given` is the cosine of the embedder's vectors; `learned` is
the cosine after a linear map that shrinks what varies within a topic, such as who asks and how, and
keeps what varies between topics.

| feature | what it is |
|---|---|
| `lag1` to `lag4` | similarity to the message one to four before |
| `max4`, `max8` | the highest of the last four, of the last eight |
| `mean3`, `mean6`, `mean12` | mean similarity to the last three, six, twelve |
| `cos3`, `cos6`, `cos24` | similarity to the mean vector of the last three, six, twenty-four |
| `own`, `other` | highest among the last eight messages of one's own side, of the others |
| `*_z`, `*_past` | a similarity in spreads from its mean over the last 16 messages; that mean |
| `max4_before` | `max4` of the message before: a boundary just there makes one here unlikely |
| `novel`, `echo` | words that the last six messages don't have; words of the last message |
| `cue.now`, `cue.before`, `cue.before2` | a cue (`cues.py`) of the message and of the two before |
| `cue.own`, `cue.other`, `cue.rise` | its mean for one's own side, the others, and now less own |
| `side` | 1 for the side that brings topics up, -1 for the others, 0 unknown (`cues.py`) |

What is not there is `NaN`. How far into the conversation a message stands, whether the same side
spoke twice in a row, and greetings are left out: they give stitched conversations away. Whether
messages have roles or names is left out too: it tells which data set a dialogue is from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import dot_products, unit_rows
from topicloom.topics.boundary_cues import (
    CUE_NAMES,
    Utterance,
    asking_side,
    cues_of,
    is_cjk,
    novelty,
    same_side,
)
from topicloom.topics.similarity import Band, Floats, against_past, lagged, mean_known

VERSION = 2
"""Raise it with any change to a feature: weights made for another version are refused."""

WINDOW = 24
"""Messages before a message that its features see."""
REACH = WINDOW
"""Lags that the similarities have to cover."""
_PAST = 16
"""Messages before whose own similarities are compared with; they look four back themselves."""
_NEAR = 6
"""Messages before whose words count as heard."""

_MEANS = (3, 6, 12)
"""Messages over whose similarities the mean is taken."""
_COSINES = (3, 6, 24)
"""Messages in the mean vectors that a message is compared with."""
_COMPARED = ("lag1", "max4", "cos3")
"""Similarities that are compared with those of earlier messages."""
_RISING = ("asks", "length", "leans", "points", "digits")
"""Cues whose habit of either side is a feature."""
_RISING_ROWS = [CUE_NAMES.index(name) for name in _RISING]

CHANNELS = ("given", "learned")
MESSAGE_NAMES = (
    *(f"{name}.{when}" for when in ("now", "before", "before2") for name in CUE_NAMES),
    *(f"{name}.{what}" for what in ("own", "other", "rise") for name in _RISING),
    *("novel", "echo", "side"),
)
"""Columns of `message_features`, in order."""
SIMILARITY_NAMES = (
    *("lag1", "lag2", "lag3", "lag4", "max4", "max8"),
    *(f"mean{k}" for k in _MEANS),
    *(f"cos{k}" for k in _COSINES),
    *("own", "other"),
    *(f"{name}_z" for name in _COMPARED),
    *(f"{name}_past" for name in _COMPARED),
    "max4_before",
)
"""Columns of `similarity_features`, in order."""
ONLINE_NAMES = (
    *MESSAGE_NAMES,
    *(f"{channel}.{name}" for channel in CHANNELS for name in SIMILARITY_NAMES),
)
"""Columns of `online_features`, in order."""


@dataclass(frozen=True, slots=True)
class Features:
    """Features of some messages."""

    values: Floats
    """One column a feature [n, f]."""
    cjk: NDArray[np.bool_]
    """True for CJK text [n], whose similarities live on another scale."""


def online_features(said: Sequence[Utterance], band: Band, first: int = 0) -> Features:
    """Causal features of messages [n] from `first` on, those before it only looked back at.

    The band holds their similarities in `CHANNELS`, of `REACH` or more.
    """
    blocks = message_features(said, first), *similarity_features(said, band, first)
    return Features(np.concatenate(blocks, axis=1), in_cjk(said, first))


def in_cjk(said: Sequence[Utterance], first: int = 0) -> NDArray[np.bool_]:
    """True for messages from `first` on that are CJK text."""
    return np.array([is_cjk(s.text) for s in said[first:]], dtype=np.bool_)


def band_of(vectors: NDArray[np.float32], learned: NDArray[np.float32]) -> Band:
    """Similarities in `CHANNELS` of vectors [n, d], with the map [d, k] of the second channel."""
    return Band.of([unit_rows(vectors), unit_rows(dot_products(vectors, learned.T))], REACH)


def similarity_features(said: Sequence[Utterance], band: Band, first: int = 0) -> Floats:
    """The features [channels, n - first, f] that are made from similarities, `SIMILARITY_NAMES`.

    Similarities are compared with those of `_PAST` messages before, so they are made from as much
    earlier on.
    """
    early = max(first - _PAST, 0)
    here = first - early
    similar, cosines = band.before(WINDOW, early), _cosines(band, early)
    max4 = np.fmax.reduce(similar[..., :4], axis=-1)
    compared = np.stack([similar[..., 0], max4, cosines[..., 0]], axis=1)
    apart, past = against_past(compared[..., here:], lagged(compared, _PAST, here))
    near = similar[:, here:, :8]
    own = same_side(said, near.shape[-1], first)
    blocks = (
        near[..., :4],
        max4[:, here:, None],
        _highest(near),
        _means(band, first),
        cosines[:, here:],
        _highest(np.where(own, near, np.nan)),
        _highest(np.where(own, np.nan, near)),
        apart.swapaxes(1, 2),
        past.swapaxes(1, 2),
        lagged(max4, 1, here),
    )
    return np.concatenate(blocks, axis=-1)


def _highest(similar: Floats) -> Floats:
    return np.asarray(np.fmax.reduce(similar, axis=-1, keepdims=True), dtype=np.float64)


def _means(band: Band, first: int) -> Floats:
    """Mean similarity [channels, n - first, `_MEANS`] to the messages before."""
    place = np.arange(first, band.products.shape[1])
    return _over_lengths(band, first, _MEANS, np.clip(place[:, None], 1, _MEANS))


def _cosines(band: Band, first: int) -> Floats:
    """Similarity [channels, n - first, `_COSINES`] to the mean vector of the messages before."""
    lengths = band.lengths_before(_COSINES, first).swapaxes(1, 2)
    return _over_lengths(band, first, _COSINES, lengths)


def _over_lengths(band: Band, first: int, widths: Sequence[int], lengths: Floats) -> Floats:
    totals = band.products[:, first:, 1 : widths[-1] + 1].cumsum(axis=-1)
    found = totals[..., [k - 1 for k in widths]] / lengths
    if first == 0:
        found[:, :1] = np.nan
    return np.asarray(found, dtype=np.float64)


def message_features(said: Sequence[Utterance], first: int = 0) -> Floats:
    """The features [n - first, f] that need no vectors, `MESSAGE_NAMES`."""
    texts = [s.text for s in said]
    cues = cue_table(said).T
    before = lagged(cues, WINDOW, first)
    own = same_side(said, WINDOW, first)
    rising = before[_RISING_ROWS]
    of_own = mean_known(np.where(own, rising, np.nan))
    of_others = mean_known(np.where(own, np.nan, rising))
    now = cues[:, first:]
    columns = (
        *(now, before[..., 0], before[..., 1]),
        *(of_own, of_others, now[_RISING_ROWS] - of_own),
        novelty(texts, _NEAR, first).T,
        asking_side(said, WINDOW, first)[None],
    )
    return np.concatenate(columns).T


def cue_table(said: Sequence[Utterance]) -> Floats:
    """Cues [n, `CUE_NAMES`] of messages."""
    return np.array([cues_of(s.text) for s in said]).reshape(len(said), len(CUE_NAMES))
