"""`topicloom review`: review a session and print a report."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from topicloom.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    print_line,
)
from topicloom.cli.context import open_context
from topicloom.cli.words import say
from topicloom.graph.review import review_session
from topicloom.nodes.runs import name_thread
from topicloom.review.channels import ReviewReport


def run_review(cli: CliOptions, name: str, *, dry_run: bool, as_json: bool) -> None:
    """Review a session and print the report, for people or as one JSON object.

    If the session is busy, findings are kept for the next.
    """
    context, console = open_context(cli), open_console()
    context.read_session(name)
    with context.open_bare_graph(reading=dry_run) as (graph, saver):
        report = review_session(
            graph,
            name_thread(name),
            dry_run=dry_run,
            checkpointer=saver,
            hold=context.storage.lock,
        )
    if as_json:
        print_json([report.model_dump(mode="json")])
    else:
        print_report(console, report)


def print_report(console: Console, report: ReviewReport) -> None:
    """Print a report: archived and merged topics first, then those that were only summarized."""
    changes = dict(zip(report.told, report.changes, strict=True))
    lines = [s for s, c in changes.items() if report.dry_run or c.topic in report.changed]
    minor = {s for s in lines if not (changes[s].archive or changes[s].absorbs)}
    for line in sorted(lines, key=minor.__contains__):
        print_line(console, line, style="dim" if line in minor else "")
    for topic, why in report.refused.items():
        print_line(console, f"left {topic} as it is: {why}", style="yellow")
    for trouble in report.troubles:
        print_line(console, trouble, style="red")
    print_dim(console, _summarize_report(report))


def _summarize_report(report: ReviewReport) -> str:
    """The number of topics, and the calls that were made."""
    dry = say("dry run, nothing was changed: ") if report.dry_run else ""
    counts = say(
        f"{count_of(len(report.reviewed), 'topic')} reviewed, {len(report.merged)} merged, "
        f"{len(report.archived)} archived"
    )
    calls = Counter((call.role, call.model) for call in report.calls)
    asked = [f"{count} x {role} ({model})" for (role, model), count in calls.items()]
    failed = sum(1 for call in report.calls if call.failure)
    cost = f"; {', '.join(asked)}" if asked else ""
    failures = say(f", {failed} of these failed") if failed else ""
    return f"{dry}{counts}{cost}{failures}"
