"""`topicloom eval fetch` and `convert`: public files become ours."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from command_line import Run, assert_one_line

from topicloom_app import load_conversations
from topicloom_lab.comparison.config import place_of
from topicloom_lab.data_sets import DATA_SETS, DataSet
from topicloom_lab.threads import load_threads

TURN = {"speaker": "Ann", "dia_id": "D1:1", "text": "I bake.", "blip_caption": "a cake"}
REPLY = {"speaker": "Ben", "dia_id": "D1:2", "text": "Lovely."}
ASKED = {"question": "What is baked?", "answer": 1, "evidence": ["D1:1; D1:2"], "category": 4}
LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1": [TURN, REPLY],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2_date_time": "never held",
    },
    "qa": [ASKED, {"question": "Who?", "adversarial_answer": "Ben", "category": 5}],
}
REALTALK = {
    "name": {"speaker_1": "Ann", "speaker_2": "Ben"},
    "session_1": [
        {**TURN, "clean_text": "I bake.", "date_time": "29.12.2023, 22:42:04"},
        {**REPLY, "clean_text": "Lovely.", "date_time": "29.12.2023, 22:43:00"},
    ],
    "qa": [ASKED],
}
QMSUM = {
    "meeting_transcripts": [{"speaker": "A", "content": "One."}, {"speaker": "B", "content": "2."}],
    "general_query_list": [],
    "specific_query_list": [
        {"query": "What?", "answer": "Two.", "relevant_text_span": [["0", "1"]]}
    ],
}

REALMEM: dict[str, Any] = {
    "_metadata": {"person_name": "Ann_Lee", "total_sessions": 3, "total_tokens": 90},
    "dialogues": [
        {
            "session_identifier": "Travel_Planning_1:S1_01",
            "session_uuid": "aa",
            "current_time": "2025-12-20 (Saturday)",
            "dialogue_turns": [
                {"speaker": "User", "content": "Plan a loop.", "is_query": False},
                {"speaker": "Assistant", "content": "Clockwise?", "is_query": False},
                {"speaker": "User", "content": "Yes."},
            ],
            "extracted_memory": [
                {"content": "a loop", "source_turn": 0, "type": "Dynamic"},
                {"content": "clockwise", "source_turn": 2, "type": "Dynamic"},
                {"content": "Call the ferry", "source_turn": -1, "type": "Schedule"},
                {"content": {"trip_name": "Loop"}, "source_turn": 2, "type": "Static"},
            ],
        },
        {
            "session_identifier": "Enhanced:S10036",
            "session_uuid": "bb",
            "current_time": "2025-12-21 (Sunday)",
            "dialogue_turns": [{"speaker": "User", "content": "What is H2O?", "is_query": False}],
            "extracted_memory": [],
        },
        {
            "session_identifier": "Travel_Planning_1:S1_02",
            "session_uuid": "cc",
            "current_time": "2025-12-22 (Monday)",
            "dialogue_turns": [
                {
                    "speaker": "User",
                    "content": "And the loop?",
                    "is_query": True,
                    "query_id": "Q-0001",
                    "category_name": "Dynamic Incremental",
                },
                {
                    "speaker": "Assistant",
                    "content": "Clockwise.",
                    "is_query": False,
                    "memory_used": [
                        {"session_uuid": "aa", "content": "clockwise"},
                        {"session_uuid": "aa", "content": "a loop"},
                    ],
                },
                {
                    "speaker": "User",
                    "content": "And the ferry?",
                    "is_query": True,
                    "query_id": "Q-0002",
                    "category_name": "Dynamic Updating",
                },
                {
                    "speaker": "Assistant",
                    "content": "Call them.",
                    "is_query": False,
                    "memory_used": [
                        {"session_uuid": "aa", "content": "a loop"},
                        {"session_uuid": "aa", "content": "Call the ferry"},
                    ],
                },
            ],
            "extracted_memory": [],
        },
    ],
}
LIFEBENCH: dict[str, list[dict[str, Any]]] = {
    "QA/QA_clean": [
        {
            "question": "谁打来电话？",
            "answer": "A",
            "question_type": "Information Extraction",
            "options": [{"option": "A", "content": "父亲"}, {"option": "B", "content": "老王"}],
            "evidence": [{"type": "call", "id": "1"}, {"type": "call", "id": "1"}],
            "ask_time": "2025-02",
        },
        {
            "question": "哪里渗水？",
            "answer": "墙",
            "question_type": "Multi-hop reasoning",
            "evidence": [
                {"type": "agent_chat", "id": "0"},
                {"type": "sms", "phone_id": "1", "message_content": "到了"},
                {"type": "note", "id": "99"},
            ],
        },
        {"question": "几只？", "answer": "无法回答", "question_type": "Unanswerable"},
    ],
    "phone_data/agent_chat": [
        {
            "phone_id": "0",
            "date": "2025-01-02",
            "conversation": {
                "turn 1": {"user": {"content": "墙渗水了"}, "assistant": {"content": "先找裂缝。"}},
                "turn 2": {"assistant": {"content": "还在吗？"}},
            },
        }
    ],
    "phone_data/call": [
        {"phone_id": "1", "contactName": "父亲", "datetime": "2025-01-02 12:00:10"},
        {"phone_id": "1", "contactName": "父亲", "datetime": "2025-01-02 12:00:10"},
    ],
    "phone_data/photo": [
        {"phone_id": "1", "caption": "海", "location": None, "datetime": "2025-01-01 08:00:00"}
    ],
    "phone_data/sms": [
        {
            "phone_id": "1",
            "message_type": "发送",
            "contactName": "老王",
            "message_content": "到了",
            "datetime": "2025-01-03 08:00:00",
        }
    ],
    "phone_data/note": [
        {"phone_id": "1", "title": "清单", "content": "胶", "datetime": "2025-01-03 09:00:00"}
    ],
    "phone_data/push": [
        {"phone_id": "1", "source": "银行", "content": "入账", "datetime": "2025-01-03 10:00:00"}
    ],
    "phone_data/calendar": [
        {
            "phone_id": "1",
            "title": "午饭",
            "description": "和老王",
            "start_time": "2025-01-04 12:00:00",
            "datetime": "2025-01-03 11:00:00",
        }
    ],
}
LONGMEMEVAL: dict[str, Any] = {
    "question_id": "gpt4_1",
    "question_type": "temporal-reasoning",
    "question": "How many days ago did I buy it?",
    "answer": 3,
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["answer_1", "ultrachat_7"],
    "haystack_dates": ["2023/05/27 (Sat) 02:21", "2023/05/20 (Sat) 10:00"],
    "haystack_sessions": [
        [
            {"role": "user", "content": "I bought a bike.", "has_answer": True},
            {"role": "assistant", "content": "Nice.", "has_answer": False},
        ],
        [{"role": "user", "content": "Tell me of knots."}],
    ],
    "answer_session_ids": ["answer_1"],
}
OURS = ("eval", "convert")


@pytest.mark.parametrize(
    ("name", "published", "id", "evidence", "said"),
    [
        ("locomo", [LOCOMO], "conv-1", ("D1:1", "D1:2"), "I bake. [shares an image: a cake]"),
        ("realtalk", REALTALK, "talk", ("D1:1", "D1:2"), "I bake. [image: a cake]"),
        ("qmsum", QMSUM, "talk", ("0", "1"), "One."),
    ],
)
def test_a_public_file_becomes_ours(
    run: Run,
    tmp_path: Path,
    name: str,
    published: Any,
    id: str,
    evidence: tuple[str, ...],
    said: str,
) -> None:
    (tmp_path / "talk.json").write_text(json.dumps(published))
    out = tmp_path / "ours.jsonl"
    outcome = run("eval", "convert", name, str(tmp_path / "talk.json"), "--out", str(out))
    assert outcome.code == 0
    assert "1 conversation, " in " ".join(outcome.out.split())
    (conversation,) = load_conversations(out)
    assert (conversation.id, conversation.messages[0].text) == (id, said)
    assert conversation.questions[0].evidence == evidence
    assert conversation.questions[0].id == f"{id}_0"


def test_realmem_asks_in_the_middle_of_the_chat(run: Run, tmp_path: Path) -> None:
    (tmp_path / "Ann.json").write_text(json.dumps(REALMEM))
    out, threads = tmp_path / "ours.jsonl", tmp_path / "threads.jsonl"
    published = str(tmp_path / "Ann.json")
    outcome = run(*OURS, "realmem", published, "--out", str(out), "--threads", str(threads))
    assert outcome.code == 0
    (conversation,) = load_conversations(out)
    (question,) = conversation.questions
    assert (conversation.id, question.id) == ("Ann_Lee", "Q-0001")
    assert (question.question, question.asked_at) == ("And the loop?", "s2t0")
    assert (question.evidence, question.answer) == (("s0t0", "s0t1"), "Clockwise.")
    assert place_of(question, conversation.messages) == 4
    assert conversation.messages[1].time == "2025-12-20T10:00:00"
    assert conversation.messages[0].speaker == "Ann Lee"
    (labelled,) = load_threads(threads)
    assert [m.id for m in labelled.messages] == [m.id for m in conversation.messages]
    project = "Travel_Planning_1"
    assert [m.thread for m in labelled.messages] == [project] * 3 + [None] + [project] * 4


def write_phone(folder: Path) -> Path:
    for name, content in LIFEBENCH.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return folder


def test_a_person_of_lifebench_is_a_folder(run: Run, tmp_path: Path) -> None:
    phone, out = write_phone(tmp_path / "lihua"), tmp_path / "ours.jsonl"
    assert run(*OURS, "lifebench", str(phone), "--out", str(out)).code == 0
    (conversation,) = load_conversations(out)
    assert (conversation.id, conversation.lang) == ("lihua", "zh")
    assert [(m.id, m.role, m.text) for m in conversation.messages] == [
        ("photo-1", "user", "[照片] 海 "),
        ("agent_chat-0-0u", "user", "墙渗水了"),
        ("call-1", "user", "[通话] 父亲 2025-01-02 12:00:10至 "),
        ("agent_chat-0-0a", "assistant", "先找裂缝。"),
        ("agent_chat-0-1a", "assistant", "还在吗？"),
        ("sms-1", "user", "[短信 发送 老王] 到了"),
        ("note-1", "user", "[笔记] 清单：胶"),
        ("push-1", "user", "[推送 银行] ：入账"),
        ("calendar-1", "user", "[日程] 午饭：和老王 2025-01-04 12:00:00"),
    ]
    question, of_chat = conversation.questions
    chat = ("agent_chat-0-0u", "agent_chat-0-0a", "agent_chat-0-1a")
    assert of_chat.evidence == (*chat, "sms-1")
    assert question.question == "谁打来电话？\nA. 父亲\nB. 老王"
    assert (question.category, question.evidence) == ("choice Information Extraction", ("call-1",))
    wrong = (*OURS, "lifebench", str(phone / "QA" / "QA_clean.json"), "--out", str(out))
    assert_one_line(run(*wrong), "is no folder", "phone_data/agent_chat.json")


def test_a_folder_is_fetched_file_by_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = write_phone(tmp_path / "lihua").as_uri()
    near = replace(DATA_SETS["lifebench"], files=(address,))
    monkeypatch.setitem(cast("dict[str, DataSet]", DATA_SETS), "lifebench", near)
    out = tmp_path / "ours.jsonl"
    assert run("eval", "fetch", "lifebench", "--out", str(out)).code == 0
    (conversation,) = load_conversations(out)
    assert conversation.id == "lihua"


TRIGGER = {
    "relation_type": "causal",
    "cue_dialogue": "A: I learned to say no.\\nB: A great skill.",
    "trigger_query": "A: I took on that project, and now I drown in it.",
    "time_gap": "about two weeks later",
}
UNITS = [
    {"id": "time_01", "type": "Time", "involved_entities": ["Wednesday", "Hanon"]},
    {"id": "entity_01", "type": "Entity", "involved_entities": ["Hanon", "Professor Zhang"]},
]


def write_folder(folder: Path, **files: Any) -> str:
    folder.mkdir()
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return str(folder)


def test_pairs_of_remarks_lie_in_conversations_in_turn(run: Run, tmp_path: Path) -> None:
    second = {**LOCOMO, "sample_id": "conv-2"}
    pairs = [TRIGGER, {**TRIGGER, "time_gap": "a month later"}, {**TRIGGER, "time_gap": "one year"}]
    folder = write_folder(tmp_path / "data", locomo10=[LOCOMO, second], locomo_plus=pairs)
    out = tmp_path / "ours.jsonl"
    assert run(*OURS, "locomo-plus", folder, "--out", str(out)).code == 0
    one, two = load_conversations(out)
    assert (one.id, two.id) == ("plus-conv-1", "plus-conv-2")
    assert [(m.id, m.speaker, m.time, m.text) for m in one.messages] == [
        ("P2:0", "Ann", "2022-05-15T13:58:00", "I learned to say no."),
        ("P2:1", "Ben", "2022-05-15T13:58:00", "A great skill."),
        ("P0:0", "Ann", "2023-05-01T13:56:00", "I learned to say no."),
        ("P0:1", "Ben", "2023-05-01T13:56:00", "A great skill."),
        ("D1:1", "Ann", "2023-05-08T13:56:00", "I bake. [shares an image: a cake]"),
        ("D1:2", "Ben", "2023-05-08T13:56:00", "Lovely."),
    ]
    asked, _ = one.questions
    assert (asked.id, asked.category, asked.evidence) == ("p0", "causal", ("P0:0",))
    assert asked.question == "I took on that project, and now I drown in it."
    assert [q.evidence for q in two.questions] == [("P1:0",)]


def test_what_a_user_told_first_is_what_a_remark_rests_on(run: Run, tmp_path: Path) -> None:
    turns = [
        {"turn_id": n, "role": role, "content": text, "timestamp": f"2024-03-01T20:1{n}:00"}
        | {"planted_pairs": units, "mentioned_entities": []}
        for n, (role, text, units) in enumerate(
            [
                ("user", "On Wednesdays I play Hanon.", ["time_01"]),
                ("assistant", "With whom?", ["entity_01"]),
                ("user", "Professor Zhang. Hanon, always.", ["entity_01", "time_01"]),
            ]
        )
    ]
    things = [{"concept": name, "reason": ""} for name in ("hanon", "Professor Zhang", "Piano")]
    remark = {"id": "q_1", "trigger_type": "Time-related memory association", "question": "8 PM!"}
    remarks = [
        remark | {"candidate_set": things, "source_pairs": ["time_01"]},
        remark | {"id": "q_2", "candidate_set": things, "source_pairs": []},
        remark | {"id": "q_3", "candidate_set": things[2:], "source_pairs": ["family"]},
    ]
    folder = write_folder(
        tmp_path / "music",
        step1_concept_pairs=UNITS,
        step4_conversations=[{"session_id": 1, "turns": turns}],
        step5_proactive_questions=remarks,
    )
    out = tmp_path / "ours.jsonl"
    assert run(*OURS, "proactive", folder, "--out", str(out)).code == 0
    (conversation,) = load_conversations(out)
    assert (conversation.id, conversation.messages[0].id) == ("proactive-music", "S1:0")
    assert [(q.id, q.category, q.evidence) for q in conversation.questions] == [
        ("q_1", "time-related", ("S1:0",)),
        ("q_2", "time-related", ("S1:2",)),
    ]


@pytest.mark.parametrize("name", ["longmemeval-s", "longmemeval-m", "longmemeval-oracle"])
def test_longmemeval_is_a_history_a_question(run: Run, tmp_path: Path, name: str) -> None:
    refused = LONGMEMEVAL | {"question_id": "gpt4_2_abs"}
    (tmp_path / "published.json").write_text(json.dumps([LONGMEMEVAL, refused]))
    out = tmp_path / "ours.jsonl"
    assert run(*OURS, name, str(tmp_path / "published.json"), "--out", str(out)).code == 0
    conversation, abstention = load_conversations(out)
    assert [(m.id, m.time) for m in conversation.messages] == [
        ("s1t0", "2023-05-20T10:00:00"),
        ("s0t0", "2023-05-27T02:21:00"),
        ("s0t1", "2023-05-27T02:21:00"),
    ]
    (question,) = conversation.questions
    assert (conversation.id, question.category) == ("gpt4_1", "temporal-reasoning")
    assert (question.evidence, question.answer) == (("s0t0",), "3")
    assert question.asked_at == "2023-05-30T23:40:00"
    assert place_of(question, conversation.messages) == 3
    assert (abstention.questions[0].category, abstention.questions[0].evidence) == (
        "abstention",
        (),
    )


@pytest.mark.parametrize("packed", [False, True])
def test_a_large_file_is_read_value_by_value(run: Run, tmp_path: Path, packed: bool) -> None:
    long = [{"role": "user", "content": "knot [{, " * 100_000}]
    rows = [
        LONGMEMEVAL
        | {
            "question_id": f"q{n}",
            "haystack_sessions": [long * n, LONGMEMEVAL["haystack_sessions"][1]],
        }
        for n in range(4)
    ]
    path, out = tmp_path / f"published.json{'.xz' if packed else ''}", tmp_path / "ours.jsonl"
    with lzma.open(path, "wt", preset=0) if packed else path.open("w") as file:
        json.dump(rows, file, indent=1)
    assert run(*OURS, "longmemeval-m", str(path), "--out", str(out), "--first", "3").code == 0
    found = list(load_conversations(out))
    assert [(c.id, len(c.messages)) for c in found] == [("q0", 1), ("q1", 2), ("q2", 3)]


def test_what_ends_too_early_writes_nothing(run: Run, tmp_path: Path) -> None:
    whole = json.dumps([QMSUM, QMSUM])
    out = tmp_path / "ours.jsonl"
    for text in (whole[:-1], whole[:-40]):
        (tmp_path / "talk.json").write_text(text)
        told = run(*OURS, "qmsum", str(tmp_path / "talk.json"), "--out", str(out))
        assert_one_line(told, "no file of qmsum")
        assert [path.name for path in tmp_path.iterdir()] == ["talk.json"]
    (tmp_path / "talk.json").write_text(f"{json.dumps(QMSUM)}\n{json.dumps(QMSUM)}\n")
    assert run(*OURS, "qmsum", str(tmp_path / "talk.json"), "--out", str(out)).code == 0
    assert [c.id for c in load_conversations(out)] == ["talk-1", "talk-2"]


def test_where_data_sets_come_from(run: Run) -> None:
    listed = run("eval", "fetch").out
    for part in ("https://github.com/snap-research/locomo", "CC BY-NC 4.0", "eval fetch qmsum"):
        assert part in listed
    for part in ("eval fetch longmemeval-oracle", "arXiv:2410.10813", "Apache-2.0"):
        assert part in listed


def test_topics_of_a_data_set_that_knows_none(run: Run, tmp_path: Path) -> None:
    wanted = ("eval", "fetch", "longmemeval-m", "--threads", str(tmp_path / "threads.jsonl"))
    assert_one_line(run(*wanted), "does not say which topic", "realmem does")


def test_what_cannot_be_fetched_or_converted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = replace(DATA_SETS["locomo"], files=("http://127.0.0.1:9/locomo10.json",))
    monkeypatch.setitem(cast("dict[str, DataSet]", DATA_SETS), "locomo", nowhere)
    assert_one_line(run("eval", "fetch", "locomo", "--out", "x"), "cannot be fetched", "convert")
    assert_one_line(run("eval", "fetch", "locomoo"), "did you mean 'locomo'")
    assert_one_line(run("eval", "fetch", "beam"), "take it from https://")
    wrong = ("eval", "convert", "locomo", str(tmp_path / "talk.json"), "--out", str(tmp_path / "o"))
    for text in ("[{}]", "", "[" * 100_000):
        (tmp_path / "talk.json").write_text(text)
        assert_one_line(run(*wrong), "no file of locomo")


def test_later_facts_override_earlier_ones(run: Run, tmp_path: Path) -> None:
    """The newest fact that names the answer is the evidence, not the one that it overrides."""
    context = (
        "Here is a list of facts:\n0. The capital of Atlantis is Poseidonis.\n"
        "1. Ann is a baker.\n2. The capital of Atlantis is Triton.\n"
    )
    asked = {
        "context": context,
        "questions": ["What is the capital of Atlantis?", "Who is the mayor of Triton's twin?"],
        "answers": [["Triton"], ["Nobody"]],
    }
    (tmp_path / "published.json").write_text(json.dumps([asked]))
    out = tmp_path / "ours.jsonl"
    told = run(*OURS, "fact-consolidation", str(tmp_path / "published.json"), "--out", str(out))
    assert told.code == 0
    (conversation,) = load_conversations(out)
    assert [m.id for m in conversation.messages] == ["f0", "f1", "f2"]
    times = [str(m.time) for m in conversation.messages]
    assert times == sorted(times)
    first, second = conversation.questions
    assert (first.answer, first.evidence) == ("Triton", ("f2",))
    assert second.evidence == ()
    (tmp_path / "published.json").write_text(json.dumps([{**asked, "context": "none"}]))
    again = run(*OURS, "fact-consolidation", str(tmp_path / "published.json"), "--out", str(out))
    assert_one_line(again, "fact-consolidation")
