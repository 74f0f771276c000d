"""The prompts and lists of cue phrases: texts of their own, one file a prompt and language.

A prompt is finished as it stands in its file. It holds no name, date or other variable, so
that the prompts of all turns and topics begin with the same words (provider caches pay for
exact prefixes only); what varies follows in messages of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Self, get_args

from topicloom.errors import ConfigurationError
from topicloom.state.folding import fold
from topicloom.state.language import CJK_RUN, Language

LANGUAGES: tuple[Language, ...] = get_args(Language)


@cache
def load_prompt(name: str, language: Language) -> str:
    """The text of a prompt that ships, without the final newline."""
    path = files("topicloom.prompts") / language / f"{name}.md"
    return path.read_text(encoding="utf-8").strip()


@cache
def prompt_names() -> tuple[str, ...]:
    folder = files("topicloom.prompts") / LANGUAGES[0]
    return tuple(sorted(f.name.removesuffix(".md") for f in folder.iterdir()))


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of an application: its own where it has some, else those that ship."""

    own: Mapping[tuple[Language, str], str] = field(default_factory=dict)
    """Texts by language and name."""

    @classmethod
    def of(cls, folder: Path | None) -> Self:
        """The prompts of a folder such as `prompts/en/reader.md`, read once; None for ours.

        Raises:
            ConfigurationError: The folder is missing, or holds a file that is no prompt of ours;
                all such files are named.
        """
        if folder is None:
            return cls()
        if not folder.is_dir():
            raise ConfigurationError(
                "there is no folder of prompts at {folder!r}", folder=str(folder)
            )
        known = {f"{la}/{n}.md": (la, n) for la in LANGUAGES for n in prompt_names()}
        found = {
            p.relative_to(folder).as_posix(): p
            for p in sorted(folder.rglob("*"))
            if p.is_file() and not p.name.startswith(".")
        }
        unknown = [name for name in found if name not in known]
        if unknown:
            raise ConfigurationError(
                "no prompts of ours in {folder!r}: {unknown}; there are {known}, each as"
                " <language>/<name>.md",
                folder=str(folder),
                unknown=", ".join(unknown),
                known=", ".join(prompt_names()),
            )
        return cls({known[name]: p.read_text("utf-8").strip() for name, p in found.items()})

    def __call__(self, name: str, language: Language) -> str:
        """The text of a prompt, without the final newline."""
        return self.own.get((language, name)) or load_prompt(name, language)


@cache
def load_cues(name: str, more: tuple[str, ...] = ()) -> Cues:
    """The cues of a list, `name.txt` or one a language, and further phrases in the same form."""
    folder = files("topicloom.prompts") / "cues"
    lists = (name, *(f"{name}_{language}" for language in LANGUAGES))
    found = [f"cues/{n}" for n in lists if (folder / f"{n}.txt").is_file()]
    return Cues.of([*(line for path in found for line in load_rows(path)), *more])


def load_words(name: str) -> frozenset[str]:
    """The words of a list, which stand apart by spaces."""
    return frozenset(" ".join(load_rows(f"cues/{name}")).split())


def load_patterns(name: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The regular expressions of a table: named ones, and its forms, each with its kind.

    A row is `@name pattern`, of which several are alternatives, or `kind pattern`; `{name}` stands
    for a pattern above it.
    """
    named: dict[str, str] = {}
    forms: list[tuple[str, str]] = []
    for row in load_rows(name):
        kind, _, pattern = row.partition(" ")
        for other, known in named.items():
            pattern = pattern.replace(f"{{{other}}}", known)
        if not kind.startswith("@"):
            forms.append((kind, pattern))
        elif kind[1:] in named:
            named[kind[1:]] += f"|{pattern}"
        else:
            named[kind[1:]] = pattern
    return named, forms


def load_rows(name: str) -> list[str]:
    """The lines of a text, such as `cues/fillers`, that are neither blank nor a comment."""
    text = (files("topicloom.prompts") / f"{name}.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


_GAP_LATIN = r"(?:\S+ ){0,3}"
_GAP_CJK = r".{0,8}?"


@dataclass(frozen=True, slots=True)
class Cues:
    """A list of phrases compiled for matching."""

    pattern: re.Pattern[str]
    """Finds any of them in a normalised text."""

    @classmethod
    def of(cls, lines: Iterable[str]) -> Cues:
        """Compile phrases, one a line; blank lines and lines that begin with `#` are passed over.

        `...` stands for a gap: up to three words, or up to eight characters in a CJK phrase. Raises
        `ValueError` if there is no phrase at all.
        """
        phrases = [line.strip() for line in lines]
        parts = [_to_regex(p) for p in phrases if p and not p.startswith("#")]
        if not parts:
            raise ValueError("a cue list needs at least one phrase")
        return cls(re.compile("|".join(parts)))

    def found_in(self, text: str) -> bool:
        """True if any phrase occurs in the text, whatever its case and punctuation."""
        return self.pattern.search(normalize(text)) is not None

    def count_in(self, text: str) -> int:
        """The number of occurrences of the phrases in the text."""
        return sum(1 for _ in self.pattern.finditer(normalize(text)))

    def is_all_of(self, text: str) -> bool:
        """True if the text is nothing but one of the phrases."""
        return self.pattern.fullmatch(normalize(text).strip()) is not None


def normalize(text: str) -> str:
    """Folded, apostrophes as `'`, other punctuation as spaces, runs of spaces as one."""
    plain = fold(text).replace("’", "'").replace("`", "'")
    return " ".join(re.sub(r"[^\w']+", " ", plain).split())


def _to_regex(phrase: str) -> str:
    cjk = CJK_RUN.search(phrase) is not None
    pieces = [normalize(piece) for piece in phrase.split("...")]
    if cjk:
        return _GAP_CJK.join(re.escape(p).replace(r"\ ", " ?") for p in pieces)
    joined = (" " + _GAP_LATIN).join(re.escape(p) for p in pieces)
    return rf"(?<!\S){joined}(?!\S)"
