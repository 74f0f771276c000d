"""The fixed words in prompts, and those of replies that no model writes: a text a language.

The prompts in `en/` and `zh/` refer to lines that announce what follows by their exact text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from topicloom.prompts.loader import LANGUAGES, load_rows
from topicloom.state.language import Language


class Wording:
    """Fixed words of one language, each by its name: `words.nothing`.

    They are in `words/en.txt`, which says what each is for, and `words/zh.txt`.
    """

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def __getattr__(self, name: str) -> str:
        try:
            return self._words[name]
        except KeyError:
            raise AttributeError(f"no fixed words are called {name!r}") from None


@cache
def get_wording(language: Language) -> Wording:
    """The fixed words of a language."""
    rows = (row.partition(": ") for row in load_rows(f"words/{language}"))
    return Wording({name: text.replace("\\n", "\n") for name, _, text in rows})


def strip_own_replies(text: str) -> str:
    """A text without replies that no model wrote: they say nothing of what was talked about."""
    return _own_replies().sub("\n", text)


def find_own_quotes(text: str) -> list[str]:
    """What a reply quotes that no model wrote; nothing if the text says anything else."""
    found = [] if strip_own_replies(text).strip() else re.findall("“(.*)”", text)
    return list(filter(None, (quote.rstrip("…").strip() for quote in found)))


@cache
def _own_replies() -> re.Pattern[str]:
    words = [get_wording(language) for language in LANGUAGES]
    begins = "|".join(re.escape(line) for w in words for line in (w.closest, w.nothing_close))
    return re.compile(rf"^(?:{begins})(?:\n[– ].*)*", re.M)
