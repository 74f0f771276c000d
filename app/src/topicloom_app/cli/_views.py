"""Messages, topics and receipts as text and tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import groupby

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from topicloom import Call, FoundMessage, Memory, MemoryTopic, Receipt, StoredMessage, TopicNote
from topicloom.hosting import LIMITED, Prices, parse_message_number
from topicloom_app.cli._timeline import TimelineAxis, choose_axis, draw_row, find_maximum
from topicloom_app.cli.console import print_dim, strip_control, to_one_line
from topicloom_app.cli.words import say
from topicloom_app.prices import price_call

_STYLES = {"user": "bold cyan", "assistant": "bold green", "tool": "yellow", "system": "magenta"}


def print_messages(console: Console, messages: Sequence[StoredMessage]) -> None:
    """Print messages under their days; at a terminal beside their numbers, else as they are."""
    for day, group in groupby(messages, lambda message: message.day):
        if day:
            console.print(Rule(Text(format_day(day), style="dim"), style="dim", align="left"))
        for message in group:
            head, said = _render_message(message)
            if not console.is_terminal:
                console.print(head.append(" ").append(said), soft_wrap=True)
                continue
            table = Table.grid(padding=(0, 1))
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold")
            table.add_row(head, said)
            console.print(table)


def print_found(console: Console, found: Sequence[FoundMessage]) -> None:
    """Print what a search found, a line each."""
    if found and not found[0].fits:
        print_dim(console, "no message fits this; closest in meaning:")
    for hit in found:
        place = f"{hit.topic:>4}" if hit.topic else "   –"
        head = Text(f"{hit.message.id:>5} {hit.message.day} {place} ", style="dim")
        room = console.width - head.cell_len - 2
        line = f"{say_speaker(hit.message)}: {hit.message.text}"
        console.print(head.append(shorten(line, room), style="not dim"))
    if not found:
        print_dim(console, "nothing was found")


def format_day(day: str) -> str:
    """A day `2026-03-02` as 2 March 2026; unchanged if it is no date."""
    try:
        found = date.fromisoformat(day)
    except ValueError:
        return strip_control(day)
    return say(
        "{day} {month} {year}",
        day=found.day,
        month=f"{found:%B}",
        number=found.month,
        year=found.year,
    )


def say_speaker(message: StoredMessage) -> str:
    """Who said a message: the name, or else the role in the language of commands."""
    return message.speaker or say(message.role)


def _render_message(message: StoredMessage) -> tuple[Text, Text]:
    """Its number and time, and what was said by whom."""
    said = (f"{strip_control(say_speaker(message))}: ", _STYLES[message.role])
    head = Text(f"{message.id:>5} {message.time[11:16]:5}", style="dim")
    return head, Text.assemble(said, strip_control(message.text))


_OTHER_COLUMNS = 58
"""Columns of the terminal that everything but the timeline takes."""
_WIDEST = 48


def render_topics(
    memory: Memory, width: int, most: int | None = None, splits_at: float = 0
) -> RenderableType:
    """The topics of a session over time, in order; with `most`, only the largest of them.

    With `splits_at`, the share of the window at which messages move into topics, it says how full
    the window is.
    """
    messages, tail = memory.history(limit=None), memory.session().tail
    if not messages:
        return Text(say("nothing has been said yet"), style="dim")
    axis = choose_axis(messages, max(12, min(_WIDEST, width - _OTHER_COLUMNS)))
    topics = memory.topics()
    chosen = sorted(topics, key=lambda t: -t.count)[:most]
    parts = {t.id: t.messages() for t in topics if t in chosen}
    view = [m for m in messages if m.seq >= tail]
    table = _make_table(axis)
    tallest = find_maximum([*parts.values(), view], axis)
    for topic in topics:
        if topic.id in parts:
            active = topic.state == "active"
            sums = _format_sums(parts[topic.id], axis, tallest, "green" if active else "blue")
            table.add_row(*_format_topic(topic, active=active), *sums)
    for provisional, held in memory.provisional().items():
        name = say("{name} (provisional)", name=to_one_line(provisional)) if provisional else ""
        row = Text(name or say("not in a topic yet"), style="dim")
        table.add_row("", row, *_format_sums(held, axis, tallest))
    left_out = len(topics) - len(parts)
    rest = say(" · {left_out} smaller topics not shown", left_out=left_out) if left_out else ""
    legend = Text(f"{say('● active ○ dormant')} · {axis.unit}{rest}", style="dim")
    newest = next(iter(memory.receipts(1)), None)
    if not (splits_at and newest and newest.window):
        return Group(table, legend)
    filled = say(
        "main window {full:.0%} full; at {splits_at:.0%}, the older messages move into topics",
        full=newest.filled,
        splits_at=splits_at,
    )
    return Group(table, legend, Text(filled, style="dim"))


def _make_table(axis: TimelineAxis) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column(say("topic"), no_wrap=True, overflow="ellipsis", max_width=34)
    table.add_column(say("messages"), justify="right", no_wrap=True)
    table.add_column(say("days"), justify="right", no_wrap=True)
    table.add_column(axis.heading, no_wrap=True, min_width=axis.columns)
    return table


def _format_topic(topic: MemoryTopic, *, active: bool) -> tuple[Text, Text]:
    mark = Text(f"{'●' if active else '○'} {topic.id}", style="green" if active else "dim")
    name = Text(to_one_line(topic.name), style="bold" if active else "")
    shown = {"archived", "divided", "merged", "pinned"}
    states: list[str] = [word for word in (topic.state, *topic.by_hand) if word in shown]
    if states:
        name.append(f" ({', '.join(map(say, states))})", style="dim")
    return mark, name


def _format_sums(
    messages: Sequence[StoredMessage], axis: TimelineAxis, tallest: int, style: str = "dim"
) -> tuple[Text, Text, Text]:
    return (
        Text(f"{len(messages):,}"),
        Text(f"{len({r.day for r in messages}):,}"),
        Text(draw_row(messages, axis, tallest), style=style),
    )


_SCORES = 8
"""Topics whose scores are shown."""


def choose_receipts(read: Callable[[int], Sequence[Receipt]], count: int) -> Sequence[Receipt]:
    """The newest `count` receipts of turns that made a prompt, with all that came after the first.

    A review or a change by hand is a turn too, and would otherwise hide the receipt of the last
    reply. If too few of the newest receipts have a prompt, the newest `count` of any kind are
    returned.
    """
    found = read(4 * count + 20)
    prompted = [n for n, receipt in enumerate(found) if receipt.sections]
    start = prompted[-count] if len(prompted) >= count else max(len(found) - count, 0)
    return found[start:]


def render_receipt(
    receipt: Receipt, known: Mapping[str, MemoryTopic], prices: Prices
) -> RenderableType:
    """A receipt as a few labelled lines, with what calls cost where there are prices."""
    turn, user, seconds = receipt.turn, receipt.user, receipt.seconds
    title = say("turn {turn}, answering {id}, {seconds:.1f} s", turn=turn, id=user, seconds=seconds)
    if not receipt.sections:
        title = say(
            "turn {turn}, after {id}, without a reply, {seconds:.1f} s",
            turn=turn,
            id=user,
            seconds=seconds,
        )
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, lines in (
        ("about", _format_about(receipt, known)),
        ("read", _format_scores(receipt, known)),
        ("quoted", _format_quotes(receipt)),
        ("reading", _format_reading(receipt)),
        ("activated", _format_names(receipt.activated, known)),
        ("deactivated", _format_names(receipt.deactivated, known)),
        ("prompt", _format_prompt(receipt)),
        ("planned", _format_plan(receipt)),
        ("edited", [" ".join(map(str, edit)) for edit in receipt.edits]),
        ("refused", [to_one_line(error) for error in receipt.edit_errors]),
        ("calls", _format_calls(receipt.calls, prices)),
        ("failed", _format_failures(receipt.failures)),
        ("not asked", [f"{role}: {say(why)}" for role, why in receipt.unasked.items()]),
        ("limits", [f"{say(LIMITED[s])}: {used:.0%}" for s, used in receipt.limits.items()]),
        ("also", [to_one_line(event) for event in receipt.events]),
    ):
        if lines:
            table.add_row(say(label), Text("\n".join(lines)))
    return Group(Rule(Text(title, style="bold"), style="dim", align="left"), table)


def format_name(topic: str, known: Mapping[str, MemoryTopic]) -> str:
    """A topic's name for people, with its id."""
    return f"{topic} {shorten(known[topic].name, 40)}" if topic in known else topic


def _format_about(receipt: Receipt, known: Mapping[str, MemoryTopic]) -> list[str]:
    """The topics that the message is about, if any is likely."""
    names = [f"{share:.0%} {format_name(topic, known)}" for topic, share in receipt.about.items()]
    return [", ".join(names)] if names else []


def _format_scores(receipt: Receipt, known: Mapping[str, MemoryTopic]) -> list[str]:
    ranked = sorted(receipt.scores.items(), key=lambda pair: -pair[1])
    lines = [f"{score:.2f}  {format_name(topic, known)}" for topic, score in ranked[:_SCORES]]
    rest = len(ranked) - len(lines)
    return [*lines, say("and {rest} less relevant ones", rest=rest)] if rest else lines


def _format_quotes(receipt: Receipt) -> list[str]:
    return [
        f"{note.topic} {shorten(note.name, 40)}: {format_runs(note.quotes)}"
        + (say(" (in part: {ids})", ids=format_runs(note.partial)) if note.partial else "")
        for note in receipt.quoted
        if note.quotes
    ]


def _format_reading(receipt: Receipt) -> list[str]:
    """What it cost that models read topics, and what it changed; nothing if none did."""
    effect = receipt.reading
    if effect is None:
        return []
    line = say(
        "{tokens:,} tokens; quotes added: {added}, kept out: {kept_out}; summaries: {summaries}",
        tokens=receipt.reading_tokens,
        added=len(effect.added),
        kept_out=len(effect.kept_out),
        summaries=effect.summaries,
    )
    return [line]


def _format_names(topics: tuple[str, ...], known: Mapping[str, MemoryTopic]) -> list[str]:
    names = ", ".join(format_name(topic, known) for topic in topics)
    return [names] if names else []


def _format_prompt(receipt: Receipt) -> list[str]:
    if not receipt.sections:
        return []
    parts = ", ".join(f"{say(name)} {tokens:,}" for name, tokens in receipt.sections.items())
    return [
        say(
            "{used:,} of {window:,} tokens: {parts}",
            used=sum(receipt.sections.values()),
            window=receipt.window,
            parts=parts,
        )
    ]


def _format_failures(calls: Sequence[Call]) -> list[str]:
    """A line for each role and what was wrong."""
    failures = Counter(f"{c.role}: {shorten(c.failure or '', 80)}" for c in calls)
    return [f"{n} x {line}" if n > 1 else line for line, n in failures.items()]


def _format_plan(receipt: Receipt) -> list[str]:
    plan = receipt.plan
    return (
        [say("{plan}, focus {focus}", plan=plan.kind, focus=plan.focus or "none")] if plan else []
    )


def _format_calls(calls: Sequence[Call], prices: Prices) -> list[str]:
    """A line for each role and model."""
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        groups.setdefault((call.role, call.model), []).append(call)
    lines = [_format_role(*names, group, prices) for names, group in groups.items()]
    return [*lines, say("together") + cost] if (cost := _format_cost(calls, prices)) else lines


def _format_cost(calls: Sequence[Call], prices: Prices) -> str:
    costs = [cost for call in calls if (cost := price_call(call, prices)) is not None]
    return say(", cost {cost:.3g}", cost=sum(costs)) if costs else ""


def _format_role(role: str, model: str, calls: Sequence[Call], prices: Prices) -> str:
    read, written = sum(c.input_tokens for c in calls), sum(c.output_tokens for c in calls)
    cached = sum(c.cached_tokens for c in calls)
    tokens = (
        say(
            ", {read:,} tokens in ({cached:,} cached), {written:,} out",
            read=read,
            cached=cached,
            written=written,
        )
        if read
        else ""
    )
    slowest = max(c.seconds for c in calls)
    cost = _format_cost(calls, prices)
    return (
        say(
            "{times} x {role} ({model}), up to {slowest:.1f} s",
            times=len(calls),
            role=role,
            model=model,
            slowest=slowest,
        )
        + tokens
        + cost
    )


_TERM = re.compile(r"\d[\d.,]*|[^\W\d_]{4,}")
_HAN = re.compile(r"[\u3400-\u9fff]+")


def shorten(text: str, width: int) -> str:
    """A text on one line of at most so many columns, its end left out where it is too long."""
    line = to_one_line(text)
    if cell_len(line) <= width:
        return line
    return f"{set_cell_size(line, width - 1).rstrip()}…"


def find_excerpt(text: str, wanted: str, width: int) -> str:
    """The part of a text that shares most with a wanted one, in at most `width` columns."""
    line = to_one_line(text)
    if cell_len(line) <= width:
        return line
    lower = line.lower()
    hits = sorted(hit for hit in map(lower.find, extract_terms(wanted)) if hit >= 0)
    start = max(hits, key=lambda h: sum(h <= other < h + width // 2 for other in hits), default=0)
    if cell_len(line[:start]) < width // 2:
        return shorten(line, width)
    start = max(0, start - width // 4)
    room = cell_len(line[start:]) - width
    while room < 0 < start:
        start -= 1
        room += cell_len(line[start])
    word = line.find(" ", start, start + width // 4)
    return f"…{shorten(line[max(word, start) + 1 :], width - 1)}"


def extract_terms(text: str) -> list[str]:
    """Numbers, longer words and pairs of Han characters, lower case."""
    pairs = [run[i : i + 2] for run in _HAN.findall(text) for i in range(len(run) - 1)]
    return _TERM.findall(_HAN.sub(" ", text.lower())) + pairs


def count_quotes(notes: Sequence[TopicNote], most: int | None = None) -> str:
    """The number of quotes from each topic, largest first; at most `most` topics are named."""
    quoting = sorted((n for n in notes if n.quotes), key=lambda n: -len(n.quotes))
    named = [
        say("{quoted} from {topic}", quoted=len(n.quotes), topic=shorten(n.name, 24))
        for n in quoting[:most]
    ]
    rest = sum(len(n.quotes) for n in quoting[len(named) :])
    others = say("{rest} from other topics", rest=rest)
    return ", ".join([*named, others] if rest else named) or say("nothing")


def format_runs(ids: Sequence[str]) -> str:
    """Short ids in order, neighbours as ranges: `m3, m7-m9`."""
    numbers = sorted(map(parse_message_number, ids))
    begins = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return ", ".join(f"m{a}" if a == b else f"m{a}-m{b}" for a, b in zip(begins, ends, strict=True))
