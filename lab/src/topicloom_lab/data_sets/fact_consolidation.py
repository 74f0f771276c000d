"""FactConsolidation of MemoryAgentBench: numbered facts, of which later ones override earlier."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from topicloom import NotAConversationError
from topicloom_lab.data_sets.rows import Row, make_row

_FACT = re.compile(r"^\s*([0-9]+)[.:]\s+(\S.*?)\s*$", re.MULTILINE)
_FIRST, _STEP = datetime(2026, 1, 1), timedelta(hours=1)
_WORD = re.compile(r"\w+")


def convert_fact_consolidation(instance: Mapping[str, Any], name: str) -> Row:
    """The facts in the order of their numbers, each a message of the user, and the questions.

    Nothing is dated there: the facts are an hour apart, so that the later one holds. The evidence
    of a question is the newest fact that names an answer and has most of the question's words; one
    whose answer no fact names, as of several steps, has none. The first answer counts as it is.

    Raises:
        NotAConversationError: There is no numbered fact.
    """
    facts = {int(number): text for number, text in _FACT.findall(str(instance["context"]))}
    if not facts:
        raise NotAConversationError("{name} has no numbered facts", name=name)
    messages: list[Row] = [
        {
            "id": f"f{number}",
            "role": "user",
            "time": (_FIRST + place * _STEP).isoformat(),
            "text": facts[number],
        }
        for place, number in enumerate(sorted(facts))
    ]
    questions = [
        {
            "id": f"{name}-{place}",
            "category": "conflict resolution",
            "question": str(question),
            "answer": accepted[0],
            "evidence": _find_evidence(facts, str(question), accepted),
        }
        for place, (question, answers) in enumerate(
            zip(instance["questions"], instance["answers"], strict=True)
        )
        if (accepted := _list_answers(answers))
    ]
    return make_row(name, messages, questions)


def _list_answers(answers: Any) -> list[str]:
    return [str(a) for a in answers] if isinstance(answers, list) else [str(answers)]


def _find_evidence(facts: Mapping[int, str], question: str, answers: Sequence[str]) -> list[str]:
    asked = set(_WORD.findall(question.casefold()))
    named = [a.casefold() for a in answers]
    shared = {
        number: len(asked & set(_WORD.findall(text.casefold())))
        for number, text in facts.items()
        if any(a in text.casefold() for a in named)
    }
    most = max(shared.values(), default=0)
    return [f"f{max(number for number, count in shared.items() if count == most)}"] if most else []
