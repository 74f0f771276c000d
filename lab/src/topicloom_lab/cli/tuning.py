"""`topicloom tune`: what a turn log says about the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from topicloom import ActivationPolicy, InputError, Receipt
from topicloom_app.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    render_heading,
    to_one_line,
)
from topicloom_app.cli.context import CliContext, open_context
from topicloom_app.cli.words import say
from topicloom_lab.tuning.figures import (
    LARGE,
    Amnesia,
    Crowd,
    LogFigures,
    Quotes,
    RecallLimit,
    figures_of,
    recall_limit,
)
from topicloom_lab.tuning.suggesting import FLAP, Advice, Replay, Suggestion, advise
from topicloom_lab.tuning.turnlog import observe, read_log


def run_tune(
    given: CliOptions, log: str, out: Path | None, kinds: Sequence[str], *, as_json: bool
) -> None:
    """Print figures, replays with other settings and suggestions, and draw pictures.

    Args:
        given: The options of every command.
        log: A session's name, or a file of receipts.
        out: Folder of the pictures; `tune-NAME` if None.
        kinds: `png`, `svg`, or none for no pictures.

    Raises:
        InvalidNameError: The name cannot name a session.
        InputError: There is no such session or file, or the file holds no receipts.
        ConfigurationError: A setting cannot be used, or pictures cannot be drawn or written.
    """
    context, console = open_context(given), open_console(quiet=as_json)
    name, receipts = _log(context, log)
    in_force = context.settings.activation
    figures = figures_of(receipts, in_force)
    console.print(figures_view(name, figures, in_force))
    row = {"log": name, "in_force": in_force.model_dump(), "figures": asdict(figures)}
    if not figures.read:
        if as_json:
            print_json([row])
        print_dim(console, "no topic was read yet: there is nothing to tune before the first split")
        return
    with console.status(say("replaying with other settings")):
        advice = advise(observe(receipts, in_force), in_force)
    limit = recall_limit(receipts)
    console.print(advice_view(advice, limit))
    if as_json:
        print_json([row | _to_row(advice, limit)])
    if kinds:
        from topicloom_lab.tuning.pictures import draw_all  # takes a second to import

        for path in draw_all(receipts, in_force, out or Path(f"tune-{name}"), kinds):
            console.print(Text(str(path)), soft_wrap=True)


def _to_row(advice: Advice, limit: RecallLimit | None) -> dict[str, Any]:
    tried = [
        {"setting": setting, "value": value, **_pick(other)}
        for setting, value, other in advice.others
    ]
    changes = advice.suggestion and dict(advice.suggestion.changes)
    share = limit and limit.share
    return {"as_they_are": _pick(advice.in_force), "tried": tried, "reason": advice.reason} | {
        "suggested": changes,
        "recall_share": share,
    }


def _pick(tried: Replay) -> dict[str, Any]:
    return {f.name: getattr(tried, f.name) for f in fields(tried) if f.name != "policy"}


def _log(context: CliContext, log: str) -> tuple[str, Sequence[Receipt]]:
    """The name of a log and its receipts: of a file if there is one, else of a session."""
    path = Path(log)
    if path.is_file() or path.suffix == ".jsonl":
        receipts = read_log(path)
        name = path.stem
    else:
        session, store = context.read_session(log)
        receipts, name = store.receipts(session), log
    if not receipts:
        raise InputError("there is no turn in {log!r} yet", log=log)
    return name, receipts


def figures_view(name: str, figures: LogFigures, in_force: ActivationPolicy) -> RenderableType:
    """A log in figures, by the questions that they answer."""
    read = figures.read
    about = say(
        "{turns}, {read} of them with topics to read. "
        "Topics are activated from {base:g} + {step:g} for each before them, "
        "stay from {share:.0%} of that, {ceiling} at most.",
        turns=count_of(figures.turns, "turn"),
        read=read,
        base=in_force.base,
        step=in_force.step,
        share=in_force.sleep_share,
        ceiling=in_force.ceiling,
    )
    return Group(
        Text(to_one_line(f"{name}: {about}")),
        render_heading("Does the user miss what was said? Then thresholds are too high"),
        _rows(_amnesia(figures.amnesia, figures.turns)),
        render_heading("Are too many topics active? Then the ceiling or the thresholds are wrong"),
        _rows(_crowd(figures.crowd, read, in_force)),
        render_heading("Is the right amount quoted?"),
        _rows(_quotes(figures.quotes, read)),
    )


def advice_view(advice: Advice, limit: RecallLimit | None) -> RenderableType:
    """The replays of other settings, and the one that a log speaks for."""
    return Group(
        render_heading("The same turns with other settings"),
        _replays(advice),
        render_heading("Suggested"),
        *_suggested(advice),
        *_limit(limit),
    )


def _amnesia(found: Amnesia, turns: int) -> list[tuple[str, str]]:
    return [
        (
            f"{found.cues}",
            say("of {turns} turns searched everything because the user missed it", turns=turns),
        ),
        (f"{found.asked}", "searches were asked for by the model"),
        (f"{found.dormant}", "of these turns quoted a topic that only the search had activated"),
        (f"{found.empty}", "found nothing"),
    ]


def _crowd(found: Crowd, read: int, in_force: ActivationPolicy) -> list[tuple[str, str]]:
    return [
        (
            f"{found.usual:.1f}",
            say("topics are active after a turn, {most} at most", most=found.most),
        ),
        (
            _share(found.full, read),
            say("of the turns ended at the ceiling of {ceiling}", ceiling=in_force.ceiling),
        ),
        (
            f"{found.reads:,}",
            say("readings; {share} led to a quote", share=_share(found.quoting, found.reads)),
        ),
        (
            _share(found.under, found.reads),
            say(
                "of them scored less than their place asks of a new topic, and the topic stayed: "
                "for {turns:.1f} turns on average, {most} at most",
                turns=found.stretch,
                most=found.longest,
            ),
        ),
        (
            f"{found.activated}",
            say(
                "activations; {flaps} within {turns} turns of a deactivation",
                flaps=found.flaps,
                turns=FLAP,
            ),
        ),
    ]


def _quotes(found: Quotes, read: int) -> list[tuple[str, str]]:
    each = found.originals / (found.topics or 1)
    return [
        (
            f"{found.originals:.1f}",
            say(
                "originals are quoted in a turn, {each:.1f} from each of {topics:.1f} topics; "
                "{most} at most",
                each=each,
                topics=found.topics,
                most=found.most,
            ),
        ),
        (_share(found.none, read), "of the turns quoted nothing new"),
        (f"{found.notes:.0%}", "of the prompt is recall, in the median turn"),
        (
            f"{found.large:.0%}",
            say("of the turns had more than {share:.0%} of recall", share=LARGE),
        ),
    ]


def _replays(advice: Advice) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(say("setting"))
    for name in ("readings", "missed", "too soon", "full", "guessed"):
        table.add_column(say(name), justify="right")
    base = advice.in_force
    table.add_row(say("as they are"), *_cells(base, base))
    for setting, value, other in advice.others:
        same = (other.reads, other.missed, other.flaps) == (base.reads, base.missed, base.flaps)
        table.add_row(f"{setting} {value:g}", *_cells(other, base), style="dim" if same else "")
    said = say(
        "missed: of {wanted:,} topics quoted, those that would have been dormant. too soon: "
        "activated within {flap} turns of a deactivation. full: turns at the ceiling. "
        "guessed: readings without a score in the log",
        wanted=base.wanted,
        flap=FLAP,
    )
    return Group(table, Text(said, style="dim"))


def _cells(other: Replay, base: Replay) -> list[str]:
    change = (other.reads - base.reads) / max(1, base.reads)
    reads = f"{other.reads:,}" if other is base else f"{other.reads:,} {change:+4.0%}"
    return [reads, f"{other.missed}", f"{other.flaps}", f"{other.full}", f"{other.guessed}"]


def _suggested(advice: Advice) -> Sequence[RenderableType]:
    suggestion = advice.suggestion
    if suggestion is None:
        return [Text(say("nothing: {reason}", reason=say(advice.reason)))]
    if not suggestion.changes:
        return [Text(_nothing_better(suggestion))]
    lines = [_line(f"ACTIVATION__{s.upper()}", v) for s, v in suggestion.changes.items()]
    return [*lines, Text(_price(suggestion.replay, advice.in_force), style="dim")]


def _nothing_better(suggestion: Suggestion) -> str:
    if suggestion.aim == "recall":
        return say(
            "searches often found dormant topics, but with none of the other thresholds would "
            "they have been active: their first ratings were too low"
        )
    return say("keep the thresholds: no other ones save 5% of the readings without missing more")


def _price(other: Replay, base: Replay) -> str:
    return say(
        "{before:,} readings become {after:,}; of {wanted:,} topics quoted, "
        "{missed} would have been dormant instead of {missed_before}",
        before=base.reads,
        after=other.reads,
        wanted=base.wanted,
        missed=other.missed,
        missed_before=base.missed,
    )


def _limit(limit: RecallLimit | None) -> Sequence[RenderableType]:
    if limit is None:
        return []
    price = say(
        "recall takes more than {limit:.0%} of the prompt too often; so it would in "
        "{turns:.0%} of the turns, with {kept:.0%} of what is recalled now",
        limit=LARGE,
        turns=limit.large,
        kept=limit.kept,
    )
    return [_line("RECALL_SHARE", limit.share), Text(price, style="dim")]


def _line(setting: str, value: float) -> RenderableType:
    return Text(f"TOPICLOOM_{setting}={value:g}", style="bold")


def _rows(rows: Sequence[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True, style="bold")
    table.add_column(overflow="fold")  # Chinese has no spaces to break at
    for figure, what in rows:
        table.add_row(figure, Text(say(what)))
    return table


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.0%}"
