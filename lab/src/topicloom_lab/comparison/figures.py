"""The figures of a comparison; readable in grey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from topicloom_lab.comparison.config import name_of
from topicloom_lab.comparison.figure_style import Stroke, apart, lay_out, stroke_of
from topicloom_lab.comparison.summary import OURS, Summary
from topicloom_lab.strategies.catalogue import STRATEGIES, Kind
from topicloom_lab.tuning.pictures.style import DARK, LIGHT, MIDDLE, plain, save_figures

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
