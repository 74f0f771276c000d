"""What fills the prompt, turn by turn, and how much of it is recall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from topicloom.evaluation.tuning.pictures.style import (
    ACCENT,
    DARK,
    MIDDLE,
    mark,
    name_axes,
    plain,
    sheet,
)
from topicloom.evaluation.tuning.prompts import LARGE, note_share
from topicloom.state.curation import FAINT
from topicloom.state.receipt import Receipt

_SECTIONS = (("system", DARK), ("tools", MIDDLE), ("tail", FAINT), ("notes", ACCENT))
"""Sections of a prompt from the foot up, with their colours."""
_SAID = {"notes": "recall notes", "tail": "the tail", "system": "system prompt"}


def draw_prompt(receipts: Sequence[Receipt]) -> Figure:
    """Sections of the prompts in tokens; below, the share of recall.

    Args:
        receipts: In order.
    """
    prompts = [r for r in receipts if r.sections]
    turns = [r.turn for r in prompts]
    figure = sheet(
        9.0,
        6.0,
        "What fills the prompt",
        f"{len(prompts)} prompts; the window holds {max(r.window for r in prompts):,} tokens",
    )
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
