"""Topics over time: a lane for each, dormant, active, quoted, asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from topicloom.state.activation import ActivationPolicy
from topicloom.state.receipt import Receipt
from topicloom_lab.tuning.pictures.style import (
    ACCENT,
    DARK,
    LIGHT,
    explain,
    families,
    label,
    name_axes,
    plain,
    sheet,
    stretches,
)
from topicloom_lab.tuning.turnlog import names_in, quoted_in, sought_in, topics_in

_LANES = 36
"""Topics that there are lanes for."""
_HALF = 0.32
"""Half the height of a lane's bar; lanes are 1 apart."""


def draw_lanes(receipts: Sequence[Receipt], in_force: ActivationPolicy) -> Figure:
    """A lane for each topic, those that were active most, by when they began.

    The receipts are of consecutive turns; the settings are those that they were made with.
    """
    active = Counter(topic for receipt in receipts for topic in receipt.active)
    began: dict[str, int] = {}
    for receipt in receipts:
        began |= dict.fromkeys(topics_in(receipt) - began.keys(), receipt.turn)
    lanes = sorted(dict(active.most_common(_LANES)), key=lambda t: (began[t], len(t), t))
    rest = len(began) - len(lanes)
    height = 1.5 + 0.21 * len(lanes)
    said = f"{len(lanes)} topics, in the order in which they began"
    said += f"; {rest} that were active for less long are left out" if rest else ""
    figure = sheet(10.0, height, "Topics over time", said)
    axes = figure.add_axes((0.2, 0.45 / height, 0.77, (height - 1.4) / height))
    for row, topic in enumerate(lanes):
        _lane(axes, row, topic, began[topic], receipts, in_force)
    names = names_in(receipts)
    axes.set_yticks(
        range(len(lanes)),
        labels=[label(topic, names.get(topic, "")) for topic in lanes],
        fontfamily=list(families()),
        parse_math=False,
    )
    axes.set(ylim=(len(lanes) - 0.4, -0.6), xlim=(receipts[0].turn, receipts[-1].turn + 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain(axes, grid="x")
    name_axes(axes, "turn", "")
    _key(axes)
    return figure


def _lane(
    axes: Axes,
    row: int,
    topic: str,
    began: int,
    receipts: Sequence[Receipt],
    in_force: ActivationPolicy,
) -> None:
    active = [r.turn for r in receipts if topic in r.active]
    quoted = np.array([r.turn for r in receipts if topic in quoted_in(r)])
    sought = np.array([r.turn for r in receipts if topic in sought_in(r, in_force)])
    axes.plot((began, receipts[-1].turn + 1), (row, row), color=LIGHT, linewidth=0.8, zorder=2)
    axes.broken_barh(stretches(active), (row - _HALF, 2 * _HALF), color=LIGHT, zorder=3)
    axes.vlines(quoted + 0.5, row - _HALF, row + _HALF, color=DARK, linewidth=1.2, zorder=4)
    look: dict[str, Any] = {
        "linestyle": "",
        "marker": "v",
        "markersize": 8,
        "markeredgecolor": "white",
    }
    axes.plot(sought + 0.5, np.full(len(sought), row), color=ACCENT, **look, zorder=5)


def _key(axes: Axes) -> None:
    signs = [
        Line2D([], [], color=LIGHT, linewidth=0.8, label="dormant"),
        Patch(color=LIGHT, label="active"),
        Line2D([], [], color=DARK, linestyle="", marker="|", markersize=9, label="quoted"),
        Line2D([], [], color=ACCENT, linestyle="", marker="v", label="activated by a search only"),
    ]
    explain(axes, (1.0, 1.0), handles=signs, ncols=4)
