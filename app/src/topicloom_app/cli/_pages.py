"""A session to read or to take elsewhere: as Markdown, JSON lines, or a page of HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Literal

from topicloom import StoredMessage
from topicloom.hosting import get_media_kind, to_row
from topicloom_app.cli._views import format_day, say_speaker
from topicloom_app.cli.console import strip_control, to_one_line

ExportKind = Literal["markdown", "jsonl", "html"]
Messages = Sequence[StoredMessage]

_STYLE = """\
:root { color-scheme: light dark }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif }
h2 { margin-top: 2.5rem; font-size: 1rem; font-weight: normal; opacity: .7 }
article { margin: 1rem 0; padding: .6rem 1rem; border-radius: .6rem; border: 1px solid #8884 }
article.user { background: #8882 }
header { font-size: .8rem; opacity: .7 }
article div { margin-top: .3rem; white-space: pre-wrap; overflow-wrap: anywhere }
"""


def write_markdown(name: str, messages: Messages) -> str:
    """Each message as a quotation, so that what it says stays within."""
    parts = [f"# {to_one_line(name)}\n"]
    for day, said in _group_days(messages):
        parts.append(f"## {day}\n")
        for message in said:
            lines = "\n".join(f"> {line}".rstrip() for line in _show(message).split("\n"))
            parts.append(f"**{_head(message)}**\n\n{lines}\n")
    return "\n".join(parts)


def write_lines(name: str, messages: Messages) -> str:
    """A message a line, as `import jsonl` takes them."""
    return "".join(json.dumps(to_row(m), ensure_ascii=False) + "\n" for m in messages)


def hide_texts(messages: Messages) -> list[StoredMessage]:
    """The messages in other letters and digits, for people who may not read them.

    Speakers are `user` or `assistant`; media and tools are left out.
    """
    return [
        m.model_copy(update={"text": _hide(m.text), "speaker": None, "whole": None})
        for m in messages
    ]


def _hide(text: str) -> str:
    return _WORDS.sub(lambda found: _VEIL[found.lastgroup or ""] * len(found[0]), text)


_WORDS = re.compile(r"(?P<digit>\d+)|(?P<latin>[a-zA-Z]+)|(?P<other>[^\W_]+)")
_VEIL = {"digit": "0", "latin": "x", "other": "字"}


def write_html(name: str, messages: Messages) -> str:
    """A page by itself; nothing that a message says is markup in it."""
    body = [f"<h1>{escape(name)}</h1>"]
    for day, said in _group_days(messages):
        body.append(f"<h2>{escape(day)}</h2>")
        body += [
            f'<article class="{m.role}" id="{m.id}"><header>{escape(_head(m))}</header>'
            f"<div>{escape(_show(m))}</div></article>"
            for m in said
        ]
    head = f'<meta charset="utf-8"><title>{escape(name)}</title><style>{_STYLE}</style>'
    return (
        f"<!doctype html>\n<html><head>{head}</head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def write_page(name: str, messages: Messages, hide: bool, kind: ExportKind = "html") -> str:
    """A session by its name and messages, to `hide` what they say in other letters."""
    return _WRITERS[kind](name, hide_texts(messages) if hide else messages)


_WRITERS: Mapping[ExportKind, Callable[[str, Messages], str]] = {
    "markdown": write_markdown,
    "jsonl": write_lines,
    "html": write_html,
}


def _group_days(messages: Messages) -> Iterator[tuple[str, Iterator[StoredMessage]]]:
    for day, said in groupby(messages, lambda m: m.day):
        yield format_day(day), said


def _head(message: StoredMessage) -> str:
    """Who spoke and when, on one line."""
    return to_one_line(f"{say_speaker(message)} · {message.time[11:16]} · {message.id}")


def _show(message: StoredMessage) -> str:
    """The text, with lines for what else the message has."""
    calls = getattr(message.message, "tool_calls", ())
    others = [f"[{get_media_kind(block)}]" for block in message.media]
    others += [f"{c['name']}({json.dumps(c['args'], ensure_ascii=False)})" for c in calls]
    return strip_control("\n".join([*filter(None, [message.text]), *others]))
