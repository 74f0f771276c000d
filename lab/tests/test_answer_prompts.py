"""The prompts that answer and judge quote the lines that announce what follows."""

from __future__ import annotations

import re

from tables import each_row

from topicloom.lab import Language, load_prompt
from topicloom.prompts.loader import LANGUAGES
from topicloom_lab.comparison.measures import ANSWER_WORDS

QUOTED = {"answer": ("context", "question"), "judge": ("question", "expected", "given")}


@each_row("language", LANGUAGES)
@each_row("prompt", QUOTED)
def test_a_prompt_quotes_the_lines_as_they_are_sent(prompt: str, language: Language) -> None:
    quoted = re.findall(r"===\s.*?\s===", load_prompt(prompt, language))
    assert quoted == [getattr(ANSWER_WORDS[language], name) for name in QUOTED[prompt]]
