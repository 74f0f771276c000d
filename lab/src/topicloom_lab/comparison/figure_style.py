"""The style of a comparison's figures: strokes distinguished by shape and shade, and panels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from topicloom_lab.strategies.catalogue import STRATEGIES, Kind
from topicloom_lab.tuning.pictures import style
from topicloom_lab.tuning.pictures.style import ACCENT, DARK, MIDDLE

_PANEL = 3.3, 2.75
"""Width and height of a panel in inches."""
_LEFT, _TOP, _BETWEEN = 0.55, 0.95, 0.85


@dataclass(frozen=True, slots=True)
class Stroke:
    """The style of a line and its marks."""

    colour: str
    marker: str
    dashes: tuple[float, ...]
    """Lengths of strokes and gaps; empty for a full line."""
    width: float
    size: float
    fill: str = "white"
    order: int = 3
    """The drawing order; higher is drawn later."""

    @property
    def looks(self) -> dict[str, Any]:
        """The arguments of a line in matplotlib."""
        return {
            "color": self.colour,
            "linestyle": (0, self.dashes),
            "linewidth": self.width,
            "marker": self.marker,
            "markersize": self.size,
            "markerfacecolor": self.fill,
        }


_STROKES: Mapping[Kind, Stroke] = {
    "topicloom": Stroke(ACCENT, "o", (), 2.8, 6.0, ACCENT, 6),
    "search": Stroke(MIDDLE, "s", (4.5, 1.6), 0.9, 3.4),
    "summary": Stroke(MIDDLE, "^", (1.1, 1.4), 1.2, 4.2),
    "own": Stroke(DARK, "P", (2.0, 1.0), 1.7, 5.0),
    "place": Stroke(MIDDLE, "D", (5.0, 1.6, 1.2, 1.6), 0.9, 3.4),
}
_NAMES: Mapping[Kind, str] = {
    "topicloom": "topicloom",
    "search": "flat search",
    "summary": "summaries",
    "own": "your own",
    "place": "by place alone",
}


def stroke_of(strategy: str, best: str | None = None) -> Stroke:
    """The style of a strategy; the best of the others stands out."""
    stroke = _STROKES[STRATEGIES[strategy].kind]
    if strategy == best:
        return replace(stroke, colour=DARK, width=1.7, size=4.6, order=5)
    return stroke


def lay_out(
    title: str, count: int, kinds: Collection[Kind], best: str | None, *, labels: float
) -> tuple[Figure, list[Axes]]:
    """A picture with a title, a key, and so many panels, two a row.

    Args:
        title: Its name.
        count: How many panels.
        kinds: What the key explains, and the best of the other strategies beside that.
        best: Its name.
        labels: Inches to the right of a panel, for names.
    """
    columns = min(2, count)
    rows = -(-count // columns)
    across = _LEFT + _PANEL[0] + labels
    down = _PANEL[1] + _BETWEEN
    width, height = max(across * columns, 6.2), down * rows + _TOP - 0.1
    figure = style.sheet(width, height, title)
    _key(figure, kinds, best, (0.24 / width, 1 - 0.45 / height))
    panels = []
    for number in range(count):
        column, row = number % columns, number // columns
        place = (
            (across * column + _LEFT) / width,
            (height - _TOP - down * row - _PANEL[1] - 0.1) / height,
            _PANEL[0] / width,
            _PANEL[1] / height,
        )
        panels.append(figure.add_axes(place))
    return figure, panels


def apart(heights: Sequence[float], step: float) -> list[float]:
    """Heights that leave room for text: moved up where they are closer than a step, and all of
    a crowd at the top down again.

    Args:
        heights: In rising order, from 0 to 1.
        step: Least distance.
    """
    found = list(heights)
    for place in range(1, len(found)):
        found[place] = max(found[place], found[place - 1] + step)
    ceiling = 1.0
    for place in reversed(range(len(found))):
        found[place] = min(found[place], ceiling)
        ceiling = found[place] - step
    return found


def _key(
    figure: Figure, kinds: Collection[Kind], best: str | None, place: tuple[float, float]
) -> None:
    named = [(_STROKES[kind], name) for kind, name in _NAMES.items() if kind in kinds]
    named += [(stroke_of(best, best), "the best other")] if best else []
    handles = [Line2D([], [], **stroke.looks, label=name) for stroke, name in named]
    given = {"loc": "upper left", "ncols": len(handles), "handlelength": 3.2, "labelcolor": DARK}
    style.explain(figure, place, handles=handles, **given)
