"""Runs: stretches of rounds in which nothing speaks for a new topic.

A run ends where the boundary detector says so, where a sitting ends, and where another topic
begins. Topics are made of runs: `topics/belonging.py` says how likely two of them are about the
same thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import Vectors, unit_rows
from topicloom.search.message_columns import MessageColumns, VectorRows
from topicloom.search.words import words_of

_CONTINUES = 4.0
"""Log odds of the boundary detector at most."""
SHRINK = 12.0
"""Runs that the usual values and an empty mean weigh as much as."""
_VOICES = 3
"""Voices up to which who speaks says nothing about topics."""
_PAUSE, _LONGEST_PAUSE, _TIMES = 1800.0, 21_600.0, 4.0
"""A new sitting begins after so many times the usual pause, within these bounds in seconds."""
_ONE_MATTER, _MANY_MATTERS = 8.0, 14.0
"""Rounds of a usual sitting up to which it is about one matter, and from which on about several."""
_FEW = 2.0
"""Sittings about several matters that are taken for known before any is."""
_CUT = (-2.2, 1.0)
"""Log odds of going on below which a run ends, in sittings of one matter and of several."""
_AT_ONCE = 512
"""Messages whose vectors are read at a time, unless one run has more."""


def find_sittings(columns: MessageColumns) -> NDArray[np.bool_]:
    """True for messages that begin a round and a sitting [n]: they come after an unusual pause.

    A clock that goes back as far begins one too: it is another day's, or another device's.
    """
    sits = np.zeros(len(columns), dtype=np.bool_)
    if len(columns):
        sits[0] = True
        latest = _fill(columns.seconds)
        pause = np.diff(latest)
        usual = pause[columns.begins[1:] & (pause > 0)]
        limit = _TIMES * float(np.median(usual)) if len(usual) else _PAUSE
        limit = min(max(limit, _PAUSE), _LONGEST_PAUSE)
        timed = ~np.isnan(columns.seconds[1:])
        sits[1:] = columns.begins[1:] & timed & (np.abs(pause) > limit)
    return sits


def _fill(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Times, each unknown one as the last that is known."""
    known = ~np.isnan(seconds)
    if not known.any():
        return np.zeros(len(seconds))
    last = np.maximum.accumulate(np.where(known, np.arange(len(seconds)), -1))
    last[last < 0] = int(known.argmax())
    return np.asarray(seconds[last])


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of a conversation [k], in its order."""

    first: NDArray[np.int64]
    """Number of the first message of each."""
    last: NDArray[np.int64]
    topic: NDArray[np.int64]
    """Code of its topic; `NO_TOPIC` or `LOOSE_TOPIC` for none."""
    rounds: NDArray[np.int64]
    """Number of its rounds."""
    vectors: Vectors
    """Mean vectors less what all share, as unit rows [k, d]."""
    length: NDArray[np.float64]
    """Number of its words."""
    follows: NDArray[np.float64]
    """Log odds that it goes on with the run right before it in its sitting; NaN if none is."""
    sits: NDArray[np.bool_]
    """True if a sitting begins with it, right after the run before it."""
    goes_on: NDArray[np.bool_]
    """True if nothing but its topic, or that it has none yet, parts it from the run before it."""
    voices: NDArray[np.float64]
    """Number of times that each person speaks or is named in it [k, p]; no columns if few speak."""
    word_at: NDArray[np.int64]
    word: NDArray[np.int64]
    weight: NDArray[np.float64]
    """Its words: rows of runs, codes, and weights whose squares add up to 1 in each run."""

    def __len__(self) -> int:
        return len(self.first)


def cut_runs(columns: MessageColumns, words: Mapping[str, int], voices: Mapping[str, int]) -> Runs:
    """Cut a conversation into runs; each lies in one topic, or in none, and in one sitting."""
    sits = find_sittings(columns)
    people = len(set(columns.voice.tolist()))
    starts, parts = _find_starts(columns, sits, people)
    run = np.cumsum(starts) - 1
    count = int(run[-1]) + 1 if len(run) else 0
    begin = np.flatnonzero(starts)
    end = np.append(begin, len(columns))[1:] - 1
    near = np.zeros(count, dtype=np.bool_)
    near[1:] = columns.number[begin[1:]] == columns.number[begin[1:] - 1] + 1
    odds = np.clip(columns.continues[begin], -_CONTINUES, _CONTINUES)
    own, code, weight = _weigh_words(columns, run, count)
    length = np.bincount(run[columns.word_at], columns.times.astype(np.float64), minlength=count)
    return Runs(
        first=columns.number[begin],
        last=columns.number[end],
        topic=columns.topic[begin],
        rounds=np.maximum(1, np.bincount(run, columns.begins, minlength=count)).astype(np.int64),
        vectors=_centre(_sum_runs(columns.vectors, np.append(begin, len(columns)))),
        length=np.asarray(length, dtype=np.float64),
        follows=np.where(near & ~sits[begin], odds, np.nan),
        sits=near & sits[begin],
        goes_on=~parts[begin],
        voices=_count_voices(columns, run, count, words, voices, people),
        word_at=own,
        word=code,
        weight=weight,
    )


def _find_starts(
    columns: MessageColumns, sits: NDArray[np.bool_], people: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """True for messages that begin a run [n], and for those at which nothing goes on [n].

    A run also begins where another topic does, even if the conversation goes on.
    """
    starts = np.zeros(len(columns), dtype=np.bool_)
    if not len(columns):
        return starts, starts
    usual = (columns.begins.sum() + _MANY_MATTERS * _FEW) / (sits.sum() + _FEW)
    share = np.log(usual / _ONE_MATTER)
    share /= np.log(_MANY_MATTERS / _ONE_MATTER)
    below = _CUT[0] + (_CUT[1] - _CUT[0]) * float(np.clip(share, 0, 1))
    # Of several people at once each message may be about something else.
    below = np.inf if people > _VOICES else below
    fresh = columns.topic[1:] < 0
    apart = np.diff(columns.number) != 1
    other = np.diff(columns.topic) != 0
    breaks = fresh & (columns.continues[1:] < below)
    starts[0] = True
    starts[1:] = apart | (columns.begins[1:] & (sits[1:] | other | breaks))
    parts = np.ones(len(columns), dtype=np.bool_)
    parts[1:] = apart | sits[1:] | (columns.continues[1:] < below)
    return starts, parts


def _sum_runs(vectors: VectorRows, bounds: NDArray[np.intp]) -> Vectors:
    """Sums [k, d] of the vectors of runs, which lie between bounds [k + 1]; some at a time."""
    count = len(bounds) - 1
    sums = np.zeros((count, vectors.dimension), dtype=np.float32)
    first = 0
    while first < count:
        last = int(np.searchsorted(bounds, bounds[first] + _AT_ONCE, side="right")) - 1
        last = max(last, first + 1)
        part = vectors.read(slice(bounds[first], bounds[last]))
        begin = bounds[first:last] - bounds[first]
        sums[first:last] = np.add.reduceat(part, begin, axis=0, dtype=np.float64)
        first = last
    return sums


def _centre(sums: Vectors) -> Vectors:
    """Unit rows of sums [k, d], less what all have in common, as far as that is known by now."""
    rows = unit_rows(sums)
    rows -= rows.sum(axis=0) / (len(rows) + SHRINK)
    return unit_rows(rows)


def _weigh_words(
    columns: MessageColumns, run: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The words of runs: rows, codes and weights, by rarity among the runs."""
    size = int(columns.word.max(initial=0)) + 1
    keys, place = np.unique(run[columns.word_at] * size + columns.word, return_inverse=True)
    times = np.bincount(place, columns.times, minlength=len(keys))
    own, code = keys // size, keys % size
    rare = np.log((count + 1) / np.maximum(1, np.bincount(code, minlength=size)))
    weight = (1 + np.log(times)) * rare[code] if len(keys) else np.zeros(0)
    norm = np.sqrt(np.bincount(own, weight**2, minlength=count))
    return own, code, weight / np.maximum(norm[own], 1e-9)


def _count_voices(
    columns: MessageColumns,
    run: NDArray[np.int64],
    count: int,
    words: Mapping[str, int],
    voices: Mapping[str, int],
    people: int,
) -> NDArray[np.float64]:
    """Number of times that each person speaks or is named in each run; no columns if few speak."""
    if people <= _VOICES:
        return np.zeros((count, 0))
    found = np.zeros((count, max(voices.values(), default=0) + 1))
    np.add.at(found, (run[columns.begins], columns.voice[columns.begins]), 1)
    for name, code in voices.items():
        parts = words_of(name)
        if len(parts) != 1 or len(name) < 2 or parts[0] not in words:
            continue
        at = columns.word_at[columns.word == words[parts[0]]]
        np.add.at(found, (run[at[columns.voice[at] != code]], code), 1)
    return found
