"""The pictures of a turn log: scores, prompt and lanes of topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from topicloom.state.activation import ActivationPolicy
from topicloom.state.receipt import Receipt
from topicloom_lab.tuning.pictures.lanes import draw_lanes
from topicloom_lab.tuning.pictures.style import (
    ACCENT,
    DARK,
    FAINT,
    LIGHT,
    MIDDLE,
    explain,
    mark,
    name_axes,
    plain,
    save_figures,
    sheet,
)
from topicloom_lab.tuning.prompts import LARGE, note_share
from topicloom_lab.tuning.turnlog import quoted_in, ranking, with_readings


def draw_scores(receipts: Sequence[Receipt], in_force: ActivationPolicy) -> Figure:
    """A dot for each reading under its place; below, how many topics were active.

    Args:
        receipts: Of consecutive turns, in order, with readings in one of them at least.
        in_force: The settings that the log was made with.
    """
    read = with_readings(receipts)
    counts = Counter(len(r.active) for r in read)
    last = max(*counts, *(len(r.scores) for r in read))
    said = f"Each dot is a topic in one of {len(read)} turns, by its place among the topics read"
    figure = sheet(9.0, 6.4, "Scores and thresholds", said)
    dots = figure.add_axes((0.08, 0.36, 0.79, 0.49))
    _scatter(dots, read)
    _thresholds(dots, in_force, last)
    bars = figure.add_axes((0.08, 0.09, 0.79, 0.15), sharex=dots)
    bars.bar(list(counts), list(counts.values()), width=0.7, color=LIGHT)
    dots.set(xlim=(0.3, last + 0.7), ylim=(-0.03, 1.03))
    dots.xaxis.set_major_locator(MaxNLocator(integer=True))
    bars.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    name_axes(dots, "place in the turn, best first", "score")
    name_axes(bars, "active topics when the turn ended", "turns")
    for axes in (dots, bars):
        plain(axes)
    return figure


def _scatter(axes: Axes, read: Sequence[Receipt]) -> None:
    """The readings; those that something was quoted of stand out."""
    aside = np.random.default_rng(0)  # to the side, so that dots do not cover each other
    for quoted, colour, name in ((False, LIGHT, "nothing quoted"), (True, DARK, "quoted")):
        points = [
            (place + 1 + aside.uniform(-0.3, 0.3), receipt.scores[topic])
            for receipt in read
            for topic, place in ranking(receipt.scores).items()
            if (topic in quoted_in(receipt)) == quoted
        ]
        where = np.array(points).reshape(-1, 2)
        axes.scatter(where[:, 0], where[:, 1], s=10, color=colour, linewidths=0, label=name)
    explain(axes, (1.0, 1.0), ncols=2, handletextpad=0.1)


def _thresholds(axes: Axes, in_force: ActivationPolicy, last: int) -> None:
    places = np.arange(1, last + 1)
    thresholds = np.array([in_force.threshold(place) for place in range(last)])
    for name, share, dashes in (("to activate", 1.0, "-"), ("to stay", in_force.sleep_share, "--")):
        axes.plot(places, share * thresholds, color=ACCENT, linewidth=1.8, linestyle=dashes)
        end = share * thresholds[-1]
        mark(axes, f"{name}\n{end:.2f} at {last}", min(1.0, end))


_SECTIONS = (("system", DARK), ("tools", MIDDLE), ("tail", FAINT), ("notes", ACCENT))
"""Sections of a prompt from the foot up, with their colours."""
_SAID = {"notes": "recall notes", "tail": "the tail", "system": "system prompt"}


def draw_prompt(receipts: Sequence[Receipt]) -> Figure:
    """Sections of the prompts of receipts in order, in tokens; below, the share of recall."""
    prompts = [r for r in receipts if r.sections]
    turns = [r.turn for r in prompts]
    window = max(r.window for r in prompts)
    said = f"{len(prompts)} prompts; the window holds {window:,} tokens"
    figure = sheet(9.0, 6.0, "What fills the prompt", said)
    areas = figure.add_axes((0.09, 0.41, 0.78, 0.43))
    names = [(s, c) for s, c in _SECTIONS if any(r.sections.get(s) for r in prompts)]
    sizes = [[r.sections.get(name, 0) for r in prompts] for name, _ in names]
    areas.stackplot(turns, sizes, colors=[colour for _, colour in names], linewidth=0, step="mid")
    _name_areas(areas, [name for name, _ in names], sizes)
    areas.yaxis.set_major_formatter(FuncFormatter(lambda tokens, _: f"{tokens:,.0f}"))
    name_axes(areas, "", "tokens")
    shares = figure.add_axes((0.09, 0.09, 0.78, 0.2), sharex=areas)
    shares.plot(turns, [note_share(r.sections) for r in prompts], color=ACCENT, linewidth=1.2)
    shares.axhline(LARGE, color=DARK, linewidth=1.0, linestyle="--")
    mark(shares, f"{LARGE:.0%}", LARGE, colour=DARK)
    shares.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    shares.set_ylim(bottom=0)
    areas.set_xlim(turns[0], max(turns[-1], turns[0] + 1))
    areas.xaxis.set_major_locator(MaxNLocator(integer=True))
    name_axes(shares, "turn", "recall notes' share of the prompt")
    for axes in (areas, shares):
        plain(axes)
    return figure


def _name_areas(axes: Axes, names: Sequence[str], sizes: Sequence[Sequence[int]]) -> None:
    """Write each section's name beside the end of its area, clear of its neighbours."""
    ends = np.cumsum([0, *(size[-1] for size in sizes)])
    top = max(map(sum, zip(*sizes, strict=True)))
    height = -1.0
    for name, low, high in zip(names, ends, ends[1:], strict=False):
        height = max((low + high) / 2, height + 0.07 * top)
        mark(axes, _SAID.get(name, name), height, colour=ACCENT if name == "notes" else MIDDLE)


def draw_all(
    receipts: Sequence[Receipt], in_force: ActivationPolicy, out: Path, kinds: Sequence[str]
) -> list[Path]:
    """Draw all pictures of a log in which topics were read; see `draw_scores`, `save_figures`."""
    scores, topics = draw_scores(receipts, in_force), draw_lanes(receipts, in_force)
    pictures = {"scores": scores, "topics": topics, "prompt": draw_prompt(receipts)}
    return save_figures(pictures, out, kinds)
