"""The figures of a comparison, readable in grey: strokes differ by shape and shade."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from topicloom_lab.comparison.config import name_of
from topicloom_lab.comparison.results import OURS, Summary
from topicloom_lab.strategies.catalogue import STRATEGIES, Kind
from topicloom_lab.tuning.pictures import (
    ACCENT,
    DARK,
    LIGHT,
    MIDDLE,
    explain,
    plain,
    save_figures,
    sheet,
)

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

    The key explains some kinds and the best of the other strategies; `labels` are inches to the
    right of a panel, for names.
    """
    columns = min(2, count)
    rows = -(-count // columns)
    across = _LEFT + _PANEL[0] + labels
    down = _PANEL[1] + _BETWEEN
    width, height = max(across * columns, 6.2), down * rows + _TOP - 0.1
    figure = sheet(width, height, title)
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
    """Heights in rising order, 0 to 1, that leave room for text: moved up where they are closer
    than a step, and all of a crowd at the top down again.
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
    explain(figure, place, handles=handles, **given)


_SAME = 0.005
"""Recall by which lines may differ everywhere and still share a name."""
_TICKS = (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000)

_POINTER = {"arrowstyle": "-", "color": LIGHT, "linewidth": 0.7, "relpos": (0.0, 0.5)}
_POINTER |= {"shrinkA": 2, "shrinkB": 0}

Line = Mapping[int, float]
"""Recall by budget."""


def draw_figures(found: Sequence[Summary], folder: Path) -> list[Path]:
    """Draw recall of some summaries against budget and against cost; see `save_figures`."""
    figures = {"recall-by-budget": draw_recall(found), "recall-by-cost": draw_cost(found)}
    return save_figures(figures, folder, ["png"])


def draw_recall(found: Sequence[Summary]) -> Figure:
    """Recall against budget, a panel for each source; names stand at the ends of lines."""
    sources = list(dict.fromkeys(s.source for s in found))
    drawn = {source: _lines(found, source) for source in sources}
    bests = {source: _best_other(lines) for source, lines in drawn.items()}
    figure, panels = lay_out(
        "Evidence recall by budget", len(sources), _kinds(found), bests[sources[0]], labels=2.35
    )
    for axes, source in zip(panels, sources, strict=True):
        lines, best = drawn[source], bests[source]
        for name, line in lines.items():
            _draw(axes, list(line), list(line.values()), stroke_of(name, best))
        budgets = sorted({b for line in lines.values() for b in line})
        _scales(axes, (budgets[0] / 1.06, float(budgets[-1])), budgets)
        _frame(axes, name_of(source), "tokens of context")
        _name_lines(axes, lines, best)
    return figure


def draw_cost(found: Sequence[Summary]) -> Figure:
    """Recall against the tokens that a context really has, a panel for each source.

    What ignores the budget is here too: it shows what recall costs without any strategy.
    """
    sources = list(dict.fromkeys(s.source for s in found))
    bests = {source: _best_other(_lines(found, source)) for source in sources}
    figure, panels = lay_out(
        "What evidence recall costs", len(sources), _kinds(found), bests[sources[0]], labels=0.75
    )
    for axes, source in zip(panels, sources, strict=True):
        here, best = [s for s in found if s.source == source], bests[source]
        for name in dict.fromkeys(s.strategy for s in here):
            points = sorted((max(1.0, s.tokens), s.recall) for s in here if s.strategy == name)
            stroke = stroke_of(name, best)
            x, y = zip(*points, strict=True)
            _draw(axes, x, y, stroke if name in (OURS, best) else replace(stroke, width=0.0))
            if name in (OURS, best) or not STRATEGIES[name].limited:
                _name_point(axes, name, points[-1], stroke.colour)
        tokens = [max(1.0, s.tokens) for s in here]
        _scales(axes, (min(tokens) / 1.4, max(tokens) * 1.4), _TICKS)
        _frame(axes, name_of(source), "tokens of a context, on average")
    return figure


def _lines(found: Sequence[Summary], source: str) -> dict[str, Line]:
    """The lines of a source: of what keeps to the budget."""
    here = [s for s in found if s.source == source and STRATEGIES[s.strategy].limited]
    names = dict.fromkeys(s.strategy for s in here)
    return {name: {s.budget: s.recall for s in here if s.strategy == name} for name in names}


def _draw(axes: Axes, x: Sequence[float], y: Sequence[float], stroke: Stroke) -> None:
    look = stroke.looks | {"markeredgewidth": 1.0, "zorder": stroke.order}
    axes.plot(x, y, **look, clip_on=False)


def _scales(axes: Axes, span: tuple[float, float], ticks: Sequence[int]) -> None:
    shown = [t for t in ticks if span[0] <= t <= span[1]]
    axes.set_xscale("log")
    axes.set_xlim(*span)
    axes.set_xticks(shown, labels=[f"{t // 1_000}k" if t % 1_000 == 0 else str(t) for t in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.1f}"))


def _frame(axes: Axes, title: str, x: str) -> None:
    plain(axes)
    axes.set_title(title, fontsize=10, color=DARK, loc="left", pad=8)
    axes.set_xlabel(x, fontsize=8, color=MIDDLE, loc="left")


def _name_lines(axes: Axes, lines: Mapping[str, Line], best: str | None) -> None:
    """Names beside the right ends of lines, moved apart; lines that run together share one."""
    groups: list[list[str]] = []
    for name, line in sorted(lines.items(), key=lambda item: list(item[1].values())[-1]):
        same = (g for g in groups if _together(lines[g[0]], line) and OURS not in (g[0], name))
        if (group := next(same, None)) is None:
            groups.append(group := [])
        group.append(name)
    ends = [list(lines[g[0]].values())[-1] for g in groups]
    for group, end, height in zip(groups, ends, apart(ends, 0.052), strict=True):
        stroke = stroke_of(best if best in group else group[0], best)
        axes.annotate(
            ", ".join(group),
            xy=(1.015, end),
            xycoords=("axes fraction", "data"),
            xytext=(1.09, height),
            textcoords=("axes fraction", "data"),
            fontsize=8,
            fontweight="bold" if group[0] == OURS else "normal",
            color=stroke.colour,
            va="center",
            annotation_clip=False,
            arrowprops=_POINTER,
        )


def _name_point(axes: Axes, name: str, point: tuple[float, float], colour: str) -> None:
    ours = name == OURS
    axes.annotate(
        name,
        point,
        (8, 3 if ours else -4),
        textcoords="offset points",
        fontsize=8,
        fontweight="bold" if ours else "normal",
        color=colour,
        va="bottom" if ours else "top",
        annotation_clip=False,
    )


def _together(first: Line, second: Line) -> bool:
    """True if two lines run together all along."""
    return first.keys() == second.keys() and all(abs(first[b] - second[b]) < _SAME for b in first)


def _best_other(lines: Mapping[str, Line]) -> str | None:
    """The strategy beside ours that finds most, over all budgets."""
    others = {n: sum(line.values()) / len(line) for n, line in lines.items() if n != OURS}
    return max(others, key=lambda n: others[n], default=None)


def _kinds(found: Sequence[Summary]) -> set[Kind]:
    """The entries of the key."""
    return {STRATEGIES[s.strategy].kind for s in found}
