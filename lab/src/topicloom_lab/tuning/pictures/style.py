"""The style of the pictures: greys that print, and fonts that have what names are written in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager, get_font

from topicloom.errors import StorageUnavailableError

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
        raise StorageUnavailableError(f"pictures cannot be written to {folder}: {error}") from error
    return list(paths)
