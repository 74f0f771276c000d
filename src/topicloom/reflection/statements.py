"""Plain statements that people make of themselves, recognised by their form.

Only forms that hardly mean anything else are here: someone who says "I'm allergic to nuts" is,
while "I'm looking for nuts", "my code is broken" and "I like that" say nothing for good. What is
missed costs a fact; what is taken wrongly would be believed for months.
"""

from __future__ import annotations

import re
from collections import defaultdict

from topicloom.prompts.loader import LANGUAGES, load_patterns, load_rows
from topicloom.reflection.own_words import MARK, mask_others

_ASKED = re.compile(r"[?？]|(?:吗|呢|么|吧)[。！!.~～ ]*$")
_SENTENCE = re.compile(
    rf"(?:\b(?:{'|'.join(load_rows('cues/abbreviations'))})[.]|[.](?=\w)|[^.!?。！？；;\n])+"
    r"[.!?。！？；;\n]*"
)
_LONGEST = 200
"""Characters of a sentence that can be a plain statement."""
_READ = 20_000
"""Characters of a message that are looked at."""


def _load_patterns() -> tuple[dict[str, re.Pattern[str]], list[tuple[str, re.Pattern[str]]]]:
    """The named patterns of `prompts/cues/statements_*.txt`, and its forms, each with its frame."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    forms: list[tuple[str, re.Pattern[str]]] = []
    for language in LANGUAGES:
        named, rows = load_patterns(f"cues/statements_{language}")
        forms += [(f.strip("-"), re.compile(named["start"] + p, re.IGNORECASE)) for f, p in rows]
        for name, pattern in named.items():
            found[name].append(pattern)
    return {n: re.compile("|".join(ps), re.IGNORECASE) for n, ps in found.items()}, forms


_PATTERNS, _FORMS = _load_patterns()


def find_statements(text: str) -> list[str]:
    """The clauses of a message in which somebody says something of himself, word for word.

    Questions, suppositions and what another says are none.
    """
    return [c for s in _find_sentences(text) for c in _split_clauses(s) if _is_statement(c)]


def find_assertions(text: str) -> list[str]:
    """The clauses of a message that are neither asked nor supposed, and what several come to.

    What another says is left out.
    """
    found: list[str] = []
    for sentence in _find_sentences(text):
        clauses = [c for c in _split_clauses(sentence) if c and not _ASKED.search(c)]
        whole = [sentence] if len(clauses) > 1 and not _ASKED.search(sentence) else []
        found += [c.replace(MARK, " ") for c in (*clauses, *whole)]
    return found


def is_of_another(sentence: str, claim: str) -> bool:
    """True if a sentence is of somebody else whom a claim in the first person does not name."""
    subject = _PATTERNS["others"].match(sentence)
    return subject is not None and not (
        _PATTERNS["relatives"].search(claim) or any(w in claim for w in subject[0].split()[:1])
    )


def is_wish(sentence: str) -> bool:
    """True if a sentence says what somebody would like or means to do."""
    return _PATTERNS["wish"].search(sentence) is not None


def find_frame(sentence: str) -> str:
    """The one thing that a statement is about, if people have only one: "name", "age", "home"."""
    bare = _strip_punctuation(sentence)
    return next((frame for frame, form in _FORMS if frame and form.search(bare)), "")


def _find_sentences(text: str) -> list[str]:
    return [" ".join(s.split()) for s in _SENTENCE.findall(mask_others(text[:_READ]))]


def _split_clauses(sentence: str) -> list[str]:
    """The clauses before anything is supposed; none of a sentence that is questioned as such, or
    taken back."""
    supposed = _PATTERNS["supposed"].search(sentence)
    if _PATTERNS["tag"].search(sentence) or (supposed and not supposed.start()):
        return []
    clauses = _PATTERNS["clause"].split(sentence[: supposed.start()] if supposed else sentence)
    # What a supposition cuts short cannot be told from what it is about.
    return clauses[:-1] if supposed else clauses


def _is_statement(sentence: str) -> bool:
    if len(sentence) > _LONGEST or MARK in sentence or _ASKED.search(sentence):
        return False
    bare = _strip_punctuation(sentence)
    return not _PATTERNS["unsure"].search(sentence) and any(form.search(bare) for _, form in _FORMS)


def _strip_punctuation(sentence: str) -> str:
    return sentence.replace("’", "'").strip(" .!。！；;，,~～")
