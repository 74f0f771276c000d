"""`topicloom review`, `reflect` and `facts`: what looks back at a session, and what it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from rich.console import Console
from rich.table import Table
from rich.text import Text

from topicloom import (
    Fact,
    FactSpan,
    ReflectionOptions,
    ReflectionPolicy,
    ReviewReport,
    open_roles,
    reflect_once,
    review_session,
)
from topicloom.hosting import DueState, Reflection, name_thread
from topicloom_app.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    print_line,
    to_one_line,
)
from topicloom_app.cli.context import CliContext, open_context
from topicloom_app.cli.words import say


def run_review(cli: CliOptions, name: str, *, dry_run: bool, as_json: bool) -> None:
    """Review a session and print the report, for people or as one JSON object.

    If the session is busy, findings are kept for the next.
    """
    context, console = open_context(cli), open_console()
    context.read_session(name)
    with context.open_bare_graph(reading=dry_run) as (graph, _):
        report = review_session(
            graph,
            name_thread(name),
            dry_run=dry_run,
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
    for line in (*report.regrouped, *sorted(lines, key=minor.__contains__)):
        print_line(console, line, style="dim" if line in minor else "")
    for topic, why in report.refused.items():
        print_line(console, "left {what} as it is: {why}", style="yellow", what=topic, why=why)
    for trouble in report.troubles:
        print_line(console, trouble, style="red")
    print_dim(console, _summarize_report(report))


def _summarize_report(report: ReviewReport) -> str:
    """The number of topics, and the calls that were made."""
    dry = say("dry run, nothing was changed: ") if report.dry_run else ""
    counts = say(
        "{topics} reviewed, {merged} merged, {archived} archived, {regrouped} put right",
        topics=count_of(len(report.reviewed), "topic"),
        merged=len(report.merged),
        archived=len(report.archived),
        regrouped=len(report.regrouped),
    )
    calls = Counter((call.role, call.model) for call in report.calls)
    asked = [f"{count} x {role} ({model})" for (role, model), count in calls.items()]
    failed = sum(1 for call in report.calls if call.failure)
    cost = f"; {', '.join(asked)}" if asked else ""
    failures = say(", {failed} of these failed", failed=failed) if failed else ""
    return f"{dry}{counts}{cost}{failures}"


def run_reflect(cli: CliOptions, name: str, *, force: bool, as_json: bool) -> None:
    """Reflect upon a session if it is due, and print the result, also as a JSON line for each."""
    context, console = open_context(cli), open_console()
    context.read_session(name)
    with context.open_checkpoints() as saver, context.open_store() as store:
        options = make_reflection_options(context, saver, store)
        result = reflect_once(name, force=force, **options)
    if as_json:
        print_json(_to_row(reflection) for reflection in result.reflections)
        return
    if not result.reflections:
        print_dim(console, _explain_not_due(result.state, context.settings.reflection))
    for reflection in result.reflections:
        _print_reflection(console, reflection)


def _to_row(done: Reflection) -> dict[str, Any]:
    calls = [call.model_dump(mode="json") for call in done.calls]
    facts = [fact.value for fact in done.facts]
    left_out = dict(done.dropped)
    return {"read": done.read, "upto": done.upto, "facts": facts, "left_out": left_out} | {
        "replaced": done.retired,
        "calls": calls,
    }


def show_facts(
    cli: CliOptions, name: str, at: str | None = None, *, every: bool = False, as_json: bool
) -> None:
    """Print the facts about the user that hold now or on a day, for people or as JSON lines.

    With `every`, those that ended too, with their spans.

    Raises:
        InputError: The day cannot be read, or there is no such session.
    """
    context, console = open_context(cli), open_console()
    with context.open_store(reading=True) as store:
        memory = context.open_memory(name, store)
        holding = {(key, fact.since) for key, fact in memory.facts(at).items()}
        spans = [s for s in memory.fact_spans() if every or (s.key, s.since) in holding]
    if as_json:
        print_json({"key": span.key, **span.value} for span in spans)
    elif spans:
        console.print(render_spans(spans))
    elif at is not None:
        print_dim(console, "nothing is known of {user}", user=to_one_line(at))
    else:
        print_dim(
            console, "no facts yet; look for some with: topicloom reflect {name} --force", name=name
        )


def make_reflection_options(
    context: CliContext, saver: BaseCheckpointSaver[str], store: BaseStore
) -> ReflectionOptions:
    """The options of reflection for a folder of sessions; raises what `open_model` does."""
    return {
        "checkpointer": saver,
        "storage": context.storage,
        "store": store,
        "roles": open_roles(settings=context.settings),
        "policy": context.settings.reflection,
    }


def render_facts(facts: Iterable[Fact]) -> Table:
    """A table of facts with their days and the messages that they rest on."""
    table = Table.grid(padding=(0, 2))
    for fact in facts:
        day = Text(to_one_line(fact.at[:10]), style="dim")
        messages = Text(to_one_line(", ".join(fact.messages)), style="dim")
        table.add_row(day, Text(to_one_line(fact.text)), messages)
    return table


def render_spans(spans: Iterable[FactSpan]) -> Table:
    """A table of facts with the days since which and until which they hold, and where from."""
    table = Table.grid(padding=(0, 2))
    for span in spans:
        days = f"{span.since[:10]} – {span.until[:10]}".rstrip()
        where = to_one_line(f"{span.thread}: {', '.join(span.messages)}")
        quote = f" “{to_one_line(span.quote)}”" if span.quote else ""
        where += f" ({span.origin})" if span.origin else ""
        where += f", {say('not confirmed')}" if span.held else ""
        text = Text(to_one_line(span.text), style="dim" if span.ended else "")
        table.add_row(
            Text(days, style="dim"), text + Text(quote, style="italic"), Text(where, style="dim")
        )
    return table


def _print_reflection(console: Console, done: Reflection) -> None:
    found = count_of(len(done.facts), "fact") if done.facts else say("no facts")
    replaced = (
        say(", {replaced} of before replaced", replaced=len(done.retired)) if done.retired else ""
    )
    print_dim(
        console,
        "read {messages}, up to m{upto}: {found}{replaced}",
        messages=count_of(done.read, "message"),
        upto=done.upto,
        found=found,
        replaced=replaced,
    )
    if done.facts:
        console.print(render_facts(done.facts))
    for reason, count in done.dropped.items():
        print_dim(console, "left out {count}: {reason}", count=count, reason=reason)
    for call in done.calls:
        if call.failure:
            print_line(
                console,
                "{role} failed: {failure}",
                style="yellow",
                role=call.role,
                failure=call.failure,
            )


def _explain_not_due(due: DueState, policy: ReflectionPolicy) -> str:
    if not due.pending:
        return "nothing was said since the last reflection"
    last = due.last_at
    said = (
        say(", the newest at {last:%Y-%m-%d %H:%M}", last=datetime.fromtimestamp(last))
        if last
        else ""
    )
    return say(
        "not due: {pending} of {rounds} rounds since the last reflection{newest}. After {minutes:g}"
        " minutes without a message it runs with fewer rounds. To run it now, add --force",
        pending=due.pending,
        rounds=policy.turns,
        newest=said,
        minutes=policy.idle_seconds / 60,
    )
