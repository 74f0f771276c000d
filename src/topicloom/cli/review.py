"""`topicloom review`: what a review found and did, for people."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from topicloom.cli.console import CliOptions, open_console, print_dim, to_one_line
from topicloom.cli.context import make_thread_config, open_context
from topicloom.graph.review import review_session
from topicloom.graph.session import build_session_graph
from topicloom.review.channels import ReviewReport


def run_review(given: CliOptions, name: str, *, dry_run: bool) -> None:
    """Review a session and print what came of it.

    Raises:
        InvalidNameError: The name cannot name a session.
        InputError: There is no such session.
        SessionBusyError: It is in use elsewhere when it is to be changed; what was found until
            then is kept for the next review.
        ConfigurationError: A model or the folder cannot be used.
    """
    place, console = open_context(given), open_console()
    place.read(name)
    with place.checkpoints() as saver:
        graph = build_session_graph(settings=place.settings, storage=place.storage).compile(
            checkpointer=saver
        )
        report = review_session(
            graph,
            make_thread_config(name),
            dry_run=dry_run,
            checkpointer=saver,
            settings=place.settings,
            storage=place.storage,
            hold=place.storage.lock,
        )
    print_report(console, report)


def print_report(console: Console, report: ReviewReport) -> None:
    """Print a report: what is put away and merged first, then what was only summed up."""
    told = dict(zip(report.told, report.changes, strict=True))
    kept = [t for t, c in told.items() if report.dry_run or c.topic in report.changed]
    weighty = [t for t in kept if told[t].archive or told[t].absorbs]
    for line in weighty:
        console.print(Text(to_one_line(line)), soft_wrap=True)
    for line in kept:
        if line not in weighty:
            console.print(Text(to_one_line(line), style="dim"), soft_wrap=True)
    for topic, why in report.refused.items():
        console.print(Text(to_one_line(f"left {topic} as it is: {why}"), style="yellow"))
    for trouble in report.troubles:
        console.print(Text(to_one_line(trouble), style="red"), soft_wrap=True)
    print_dim(console, _summarize_report(report))


def _summarize_report(report: ReviewReport) -> str:
    """How much it was, and what it cost."""
    counts = (
        f"{len(report.reviewed)} topics reviewed, {len(report.merged)} merged, "
        f"{len(report.archived)} archived"
    )
    calls = Counter((call.role, call.model) for call in report.calls)
    asked = [f"{count} x {role} ({model})" for (role, model), count in calls.items()]
    failed = sum(1 for call in report.calls if call.failure)
    cost = f"; {', '.join(asked)}" if asked else ""
    failures = f", {failed} of these failed" if failed else ""
    return f"{'dry run, nothing was changed: ' if report.dry_run else ''}{counts}{cost}{failures}"
