"""The pictures of a turn log: scores, prompt and lanes of topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from topicloom import ActivationPolicy, Receipt, StorageUnavailableError
from topicloom_lab.tuning.figures import LARGE, note_share
from topicloom_lab.tuning.turnlog import (
    names_in,
    quoted_in,
    ranking,
    sought_in,
    topics_in,
    with_readings,
)

DARK, MIDDLE, LIGHT, FAINT = "#1b1b1e", "#6f7680", "#b9c0c9", "#e6e9ed"
"""From what matters to what is only there; distinct in grey as well."""
ACCENT = "#0b5fa5"
"""The accent, which the eye should find first: as dark as text where it is printed in grey."""

_HAN = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
    "SimHei",
)
"""Fonts with Chinese characters, as systems have them."""


@cache
def families() -> tuple[str, ...]:
    """Font families in the order in which a character is looked for."""
    there = {font.name for font in fontManager.ttflist}
    return ("DejaVu Sans", *(name for name in _HAN if name in there))


@cache
def _characters() -> frozenset[int]:
    """The characters that the fonts can draw."""
    paths = [fontManager.findfont(FontProperties(family=[name])) for name in families()]
    return frozenset(code for path in paths for code in get_font(path).get_charmap())


def drawable(text: str) -> bool:
    """True if there is a picture of every character, so that none becomes an empty box."""
    return _characters().issuperset(map(ord, text))


_WIDTH = 22
"""Characters of a topic's name that are drawn."""


def label(topic: str, name: str) -> str:
    """A topic's id and name; the id alone where its name cannot be drawn."""
    name = " ".join(name.split())
    short = name if len(name) <= _WIDTH else f"{name[: _WIDTH - 1].rstrip()}…"
    return f"{topic} {short}" if short and short != topic and drawable(short) else topic


def sheet(width: float, height: float, title: str, said: str = "") -> Figure:
    """An empty picture, sized in inches, with a title and, under it, a line on what it shows."""
    figure = Figure(figsize=(width, height), dpi=150, facecolor="white")
    left, top = 0.3 / width, 1 - 0.22 / height
    figure.text(left, top, title, fontsize=13, fontweight="bold", va="top", color=DARK)
    if said:
        figure.text(left, top - 0.28 / height, said, fontsize=9, va="top", color=MIDDLE)
    return figure


def explain(drawn: Axes | Figure, place: tuple[float, float], **given: Any) -> None:
    """Add a key without a frame, by its corner at a place in shares of what is drawn."""
    looks: dict[str, Any] = {
        "loc": "lower right",
        "frameon": False,
        "fontsize": 8,
        "labelcolor": MIDDLE,
    }
    drawn.legend(bbox_to_anchor=place, **looks | given)


def plain(axes: Axes, *, grid: Literal["x", "y"] = "y") -> None:
    """Take away what is no data: the frame but for its foot, ticks, all but a faint grid."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LIGHT)
    axes.tick_params(length=0, labelsize=8, colors=MIDDLE)
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=FAINT, linewidth=0.8)


def name_axes(axes: Axes, x: str, y: str) -> None:
    """Write what the axes are."""
    axes.set_xlabel(x, fontsize=9, color=MIDDLE, loc="left")
    axes.set_title(y, fontsize=9, color=MIDDLE, loc="left")


def mark(axes: Axes, text: str, height: float, *, colour: str = ACCENT) -> None:
    """Write something to the right of a picture, at a height in its data."""
    axes.annotate(
        text,
        (1.012, height),
        xycoords=("axes fraction", "data"),
        fontsize=8,
        color=colour,
        va="center",
        annotation_clip=False,
    )


def stretches(turns: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of consecutive numbers as first number and length."""
    starts = [n for n in turns if n - 1 not in set(turns)]
    ends = [n for n in turns if n + 1 not in set(turns)]
    return [(a, b - a + 1) for a, b in zip(starts, ends, strict=True)]


def save_figures(figures: Mapping[str, Figure], folder: Path, kinds: Iterable[str]) -> list[Path]:
    """Write figures as `NAME.KIND`, and return the files.

    Raises:
        StorageUnavailableError: If they cannot be written.
    """
    paths = {
        folder / f"{name}.{kind}": figure for name, figure in figures.items() for kind in kinds
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, figure in paths.items():
            figure.savefig(path)
    except OSError as error:
        raise StorageUnavailableError(
            "pictures cannot be written to {path}: {error}", path=folder, error=error
        ) from error
    return list(paths)


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


def draw_scores(receipts: Sequence[Receipt], in_force: ActivationPolicy) -> Figure:
    """A dot for each reading under its place; below, how many topics were active.

    The receipts are of consecutive turns, in order, with readings in one of them at least.
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
