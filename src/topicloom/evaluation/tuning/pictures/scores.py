"""What topics scored, against the thresholds of their places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from topicloom.evaluation.tuning.pictures.style import (
    ACCENT,
    DARK,
    LIGHT,
    MIDDLE,
    mark,
    name_axes,
    plain,
    sheet,
)
from topicloom.evaluation.tuning.turnlog import quoted_in, ranking, with_readings
from topicloom.state.activation import ActivationPolicy
from topicloom.state.receipt import Receipt


def draw_scores(receipts: Sequence[Receipt], in_force: ActivationPolicy) -> Figure:
    """A dot for each reading under its place; below, how many topics were active.

    Args:
        receipts: Of consecutive turns, in order, with readings in one of them at least.
        in_force: The settings that the log was made with.
    """
    read = with_readings(receipts)
    counts = Counter(len(r.active) for r in read)
    last = max(*counts, *(len(r.scores) for r in read))
    figure = sheet(
        9.0,
        6.4,
        "Scores and thresholds",
        f"Each dot is a topic in one of {len(read)} turns, by its place among the topics read",
    )
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
    axes.legend(
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=2,
        frameon=False,
        fontsize=8,
        labelcolor=MIDDLE,
        handletextpad=0.1,
    )


def _thresholds(axes: Axes, in_force: ActivationPolicy, last: int) -> None:
    places = np.arange(1, last + 1)
    waking = np.array([in_force.threshold(place) for place in range(last)])
    for name, share, dashes in (("to wake", 1.0, "-"), ("to stay", in_force.sleep_share, "--")):
        axes.plot(places, share * waking, color=ACCENT, linewidth=1.8, linestyle=dashes)
        mark(axes, f"{name}\n{share * waking[-1]:.2f} at {last}", min(1.0, share * waking[-1]))
