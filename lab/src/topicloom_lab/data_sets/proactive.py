"""ProactiveMemBench: remarks to an assistant that should bring back what the user told before.

A person is a folder: the units of what they tell, the sessions in which they tell them, and the
remarks, each with the units that it rests on and three things that a reply should name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from topicloom_lab.data_sets.rows import Row, make_row

_UNITS, _SESSIONS, _REMARKS = (
    "step1_concept_pairs",
    "step4_conversations",
    "step5_proactive_questions",
)
PARTS = tuple(f"{name}.json" for name in (_UNITS, _SESSIONS, _REMARKS))
_NAMED = 2
"""Things of a remark that a unit has, if the remark rests on it and does not say so."""


def convert_proactive(person: Mapping[str, Any], name: str) -> Row:
    """The sessions of a person, with the remarks whose evidence is known.

    The evidence is where the user first tells each unit that a remark rests on. Where none of
    those was told, it rests on the units that have two of its things.
    """
    said = [
        (f"S{session['session_id']}:{turn['turn_id']}", turn)
        for session in person[_SESSIONS]
        for turn in session["turns"]
    ]
    told = dict[str, str]()
    for id_, turn in said:
        for unit in turn["planted_pairs"] if turn["role"] == "user" else ():
            told.setdefault(unit, id_)
    messages = [
        {
            "id": id_,
            "role": turn["role"],
            "speaker": turn["role"],
            "time": turn["timestamp"],
            "text": turn["content"],
        }
        for id_, turn in said
    ]
    questions = [
        {
            "id": remark["id"],
            "category": remark["trigger_type"].split()[0].lower(),
            "question": remark["question"],
            "answer": "; ".join(thing["concept"] for thing in remark["candidate_set"]),
            "evidence": evidence,
        }
        for remark in person[_REMARKS]
        if (evidence := _find_evidence(remark, told, person[_UNITS]))
    ]
    return make_row(f"proactive-{name}", messages, questions)


def _find_evidence(
    remark: Mapping[str, Any], told: Mapping[str, str], units: Sequence[Mapping[str, Any]]
) -> list[str]:
    if found := [told[unit] for unit in remark["source_pairs"] if unit in told]:
        return found
    things = {thing["concept"].lower() for thing in remark["candidate_set"]}
    return [
        told[unit["id"]]
        for unit in units
        if unit["id"] in told
        and len(things & {entity.lower() for entity in unit["involved_entities"]}) >= _NAMED
    ]
