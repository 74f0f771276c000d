"""Lines that announce what follows: a prompt quotes them, and `prompts/words/` has them.

Whoever changes such a line in one place has to change it in the other, or a model looks for a line
that never comes.
"""

from __future__ import annotations

import re

from tables import each_row

from topicloom.prompts.loader import LANGUAGES, load_prompt, load_rows
from topicloom.state.language import Language

QUOTED: dict[str, set[str]] = {
    "arbiter": {"task", "reply", "request"},
    "brief": {"part_of", "rest", "former_brief"},
    "merger": {"one_topic", "other_topic"},
    "planner": {"data", "events", "templates", "message"},
    "reader": {"topic_head", "found_head", "these_topics", "now", "looking_for", "proposed"},
    "reflector": {"known_facts"},
    "reviewer": {"former_brief"},
    "rewriter": {"message"},
    "router": {"looking_for", "topics"},
    "selector": {"message", "goal", "keywords", "candidates"},
    "splitter": {"topics", "dividing"},
}
"""The lines that each prompt quotes, by their names in `prompts/words/`."""
LINE = re.compile(r"===\s.*?\s===")


def list_lines(language: Language) -> dict[str, str]:
    """The names of the lines that announce something, by their text."""
    rows = (row.partition(": ") for row in load_rows(f"words/{language}"))
    return {text.replace("{id}", "t3"): name for name, _, text in rows if LINE.fullmatch(text)}


@each_row("language", LANGUAGES)
@each_row("prompt", QUOTED)
def test_a_prompt_quotes_the_lines_as_they_are_sent(prompt: str, language: Language) -> None:
    lines = list_lines(language)
    quoted = LINE.findall(load_prompt(prompt, language))
    unknown = [line for line in quoted if line not in lines]
    assert not unknown, f"prompts/words/{language}.txt has no such line"
    assert {lines[line] for line in quoted} == QUOTED[prompt]


@each_row("language", LANGUAGES)
def test_every_line_is_explained_by_a_prompt(language: Language) -> None:
    """A line that no prompt quotes would be noise to the model that reads it."""
    assert set(list_lines(language).values()) == set().union(*QUOTED.values())
