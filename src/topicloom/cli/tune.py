"""`topicloom tune`: what a turn log says about the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from topicloom.cli.console import dim, open_console
from topicloom.cli.given import Given
from topicloom.cli.tune_view import advice_view, figures_view
from topicloom.cli.workplace import Workplace, open_workplace
from topicloom.errors import ConfigurationError, InputError
from topicloom.evaluation.tuning.figures import figures_of
from topicloom.evaluation.tuning.observing import observe
from topicloom.evaluation.tuning.prompts import recall_limit
from topicloom.evaluation.tuning.suggesting import advise
from topicloom.evaluation.tuning.turnlog import read_log
from topicloom.state.activation import ActivationPolicy
from topicloom.state.receipt import Receipt


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """What was asked for."""

    log: str
    """A session's name, or a file of receipts."""
    out: Path | None = None
    """Folder of the pictures; `tune-NAME` if None."""
    plots: bool = True
    """Whether pictures are drawn."""
    svg: bool = False
    """Whether they are drawn as SVG too."""


def run_tune(given: Given, options: TuneOptions) -> None:
    """Print figures, replays with other settings and suggestions, and draw pictures.

    Raises:
        InvalidNameError: The name cannot name a session.
        InputError: There is no such session or file, or the file holds no receipts.
        ConfigurationError: A setting cannot be used, or pictures cannot be drawn or written.
    """
    place, console = open_workplace(given), open_console()
    name, receipts = _log(place, options.log)
    in_force = place.settings.activation
    figures = figures_of(receipts, in_force)
    console.print(figures_view(name, figures, in_force))
    if not figures.read:
        dim(console, "no topic was read yet: there is nothing to tune before the first split")
        return
    with console.status("replaying with other settings"):
        advice = advise(observe(receipts, in_force), in_force)
    console.print(advice_view(advice, recall_limit(receipts)))
    if options.plots:
        kinds = ("png", "svg") if options.svg else ("png",)
        out = options.out or Path(f"tune-{name}")
        _draw(console, receipts, in_force, out, kinds)


def _log(place: Workplace, log: str) -> tuple[str, Sequence[Receipt]]:
    """The name of a log and its receipts: of a file if there is one, else of a session."""
    path = Path(log)
    if path.is_file() or path.suffix == ".jsonl":
        receipts = read_log(path)
        name = path.stem
    else:
        session, store = place.read(log)
        receipts, name = store.receipts(session), log
    if not receipts:
        raise InputError(f"there is no turn in {log!r} yet")
    return name, receipts


def _draw(
    console: Console,
    receipts: Sequence[Receipt],
    in_force: ActivationPolicy,
    out: Path,
    kinds: Sequence[str],
) -> None:
    try:
        from topicloom.evaluation.tuning.pictures.drawing import draw_all
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "pictures need matplotlib: pip install 'topicloom[plots]', or leave them out with "
            "--no-plots"
        ) from error
    for path in draw_all(receipts, in_force, out, kinds):
        console.print(Text(str(path)), soft_wrap=True)
