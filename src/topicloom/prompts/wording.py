"""The fixed words in prompts, and those of replies that no model writes: a text a language.

The prompts in `en/` and `zh/` refer to lines that announce what follows by their exact text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from topicloom.prompts.loader import LANGUAGES, load_rows
from topicloom.state.language import Language


@dataclass(frozen=True, slots=True)
class Wording:
    """Fixed words of one language; `words/en.txt` says what each is for."""

    now: str
    this_topic: str
    other_topics: str
    topics: str
    looking_for: str
    former_brief: str
    message: str
    task: str
    reply: str
    request: str
    dividing: str
    loose_ends: str
    about_loose_ends: str
    data: str
    events: str
    templates: str
    candidates: str
    goal: str
    keywords: str
    picks: str
    known_facts: str
    fact_spans: str
    one_topic: str
    other_topic: str
    part: str
    spoken_day: str
    said_on: str
    months: str
    day: str
    weekdays: str
    facts: str
    facts_found: str
    in_other_threads: str
    days: str
    missing: str
    active: str
    dormant: str
    nothing: str
    complaint: str
    left_out: str
    medium: str
    media: str
    cut_off: str
    reply_first: str
    searched_for: str
    summaries: str
    in_short: str
    searched: str
    not_looked_at: str
    not_of_days: str
    other_days: str
    nothing_more: str
    topics_found: str
    ask_which: str
    made: str
    set_field: str
    set_own: str
    pushed: str
    removed: str
    removed_field: str
    document: str
    not_made: str
    edits_made: str
    edits_refused: str
    by_name: str
    by_link: str
    by_likeness: str
    go_on: str
    quotes_follow: str
    nothing_said: str
    abilities: str
    no_writing: str
    greeted: str
    noted: str
    thanked: str
    parted: str
    quoting_only: str
    you: str
    assistant: str


@cache
def get_wording(language: Language) -> Wording:
    """The fixed words of a language."""
    rows = (row.partition(": ") for row in load_rows(f"words/{language}"))
    return Wording(**{name: text.replace("\\n", "\n") for name, _, text in rows})


def strip_own_replies(text: str) -> str:
    """A text without replies that no model wrote: they say nothing of what was talked about."""
    return _own_replies().sub("\n", text)


@cache
def _own_replies() -> re.Pattern[str]:
    forms = []
    for words in map(get_wording, LANGUAGES):
        fixed = (
            words.nothing_said,
            words.no_writing,
            words.greeted,
            words.noted,
            words.thanked,
            words.parted,
        )
        said = "|".join(map(re.escape, fixed))
        forms.append(re.escape(words.abilities))
        forms.append(rf"(?:{said})\s?(?:{re.escape(words.quoting_only)}|$)")
        forms.append(rf"{re.escape(words.quotes_follow)}(?:\n– .*)+")
    return re.compile(rf"^(?:{'|'.join(forms)})", re.M)
