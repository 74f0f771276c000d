"""Exports of people who use another language: their words are read as those of others are."""

from __future__ import annotations

import json
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from importing import read_one, save
from tables import each_row

from topicloom_app.recordings.exported import UNREAD_DAYS
from topicloom_app.recordings.exports import read_exports

CHATS = {
    "Arabic": (
        "\u200f١٥/١/٢٠٢٦، ٩:١٥ م - نور: المفتاح تحت السجادة",
        "\u200f١٦/١/٢٠٢٦، ٨:٠٠ ص - سامي: شكرا",
    ),
    "French": ("15/01/2026 à 21:15 - Maëlle: La clé", "16/01/2026 à 08:00 - Luc: Merci"),
    "French, iOS": ("[15/01/2026 à 21:15:00] Maëlle: La clé", "[16/01/2026 à 08:00:00] Luc: Merci"),
    "Finnish": ("15.1.2026 klo 21.15 - Aino: Avain", "16.1.2026 klo 8.00 - Olli: Kiitos"),
    "Greek": ("15/1/26, 9:15 μ.μ. - Νίκη: Το κλειδί", "16/1/26, 8:00 π.μ. - Άρης: Ευχαριστώ"),
    "Chinese": ("2026/1/15 下午9:15 - 小林: 钥匙", "2026/1/16 上午8:00 - 阿美: 谢谢"),
    "Chinese, Taiwan": ("2026/1/15 晚上9:15 - 小林: 鑰匙", "2026/1/16 早上8:00 - 阿美: 謝謝"),
    "Korean": ("2026. 1. 15. 오후 9:15, 지우 : 열쇠", "2026. 1. 16. 오전 8:00, 민수 : 고마워"),
    "Thai": ("15/1/2569 21:15 - นิด: กุญแจ", "16/1/2569 08:00 - ต้น: ขอบคุณ"),
    "Hindi": ("15/01/26, 9:15 pm - नूर: चाबी", "16/01/26, 8:00 am - सैम: धन्यवाद"),
    "Persian": ("۱۵/۱/۲۰۲۶, ۲۱:۱۵ - مینا: کلید", "۱۶/۱/۲۰۲۶, ۰۸:۰۰ - رضا: ممنون"),
    "English, Canada": ("2026-01-15, 9:15 p.m. - Noor: A key", "2026-01-16, 8:00 a.m. - Sam: Hi"),
    "English, US": ("1/15/26, 9:15\u202fPM - Noor: The key", "1/16/26, 8:00\u202fAM - Sam: Thanks"),
    "Dutch": ("15-01-2026 21:15 - Fleur: De sleutel", "16-01-2026 08:00 - Bram: Dank"),
    "Hungarian": ("2026. 01. 15. 21:15 - Éva: A kulcs", "2026. 01. 16. 8:00 - Pál: Kösz"),
}  # fmt: skip
"""Two lines of a chat of WhatsApp's, on 15 January at 21:15 and on the 16th at 8:00."""


@each_row("language", CHATS)
def test_a_chat_of_whatsapps(tmp_path: Path, language: str) -> None:
    path = tmp_path / "chat.txt"
    path.write_text("\n".join(CHATS[language]), "utf-8")
    found = read_one(path)
    found.fill_times(ZoneInfo("Asia/Kolkata"))
    said = [line.rsplit(": ", 1)[1] for line in CHATS[language]]
    assert [m.content for m in found.messages] == said
    assert all(
        m.name and m.name.strip() in CHATS[language][n] for n, m in enumerate(found.messages)
    )
    assert [m.additional_kwargs["time"] for m in found.messages] == [
        "2026-01-15T21:15:00+05:30",
        "2026-01-16T08:00:00+05:30",
    ]


@each_row(
    ("line", "text"),
    [
        ("Eva: <Médias omis>", "[Médias omis]"),
        ("Eva: <Mídia oculta>", "[Mídia oculta]"),
        ("Eva: \u200eplan.pdf (Datei angehängt)", "[plan.pdf (Datei angehängt)]"),
        ("Eva: see <b> there", "see <b> there"),
    ],
)
def test_what_stands_for_a_file_is_told_from_words(tmp_path: Path, line: str, text: str) -> None:
    path = tmp_path / "chat.txt"
    path.write_text(f"15.01.26, 09:00 - {line}\n15.01.26, 09:01 - Eva: ok\n", "utf-8")
    assert [m.content for m in read_one(path).messages] == [text, "ok"]


def test_a_chat_is_called_after_who_it_is_with(tmp_path: Path) -> None:
    path = tmp_path / "Discussion WhatsApp avec Luc.txt"
    path.write_text("\n".join(CHATS["French"]), "utf-8")
    assert read_one(path).name == "Luc"


def test_days_that_can_be_read_in_two_ways_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text("03/04/2026, 21:15 - Eva: The key\n", "utf-8")
    found = read_one(path)
    assert not found.messages
    assert found.unread.counts == {UNREAD_DAYS: 1}
    assert "03/04/2026" in found.unread.examples[UNREAD_DAYS]
    for day_first, day in ((True, "2026-04-03"), (False, "2026-03-04")):
        (found,) = read_exports([path], day_first=day_first)
        assert found.messages[0].additional_kwargs["time"].startswith(day)


PAGES = {
    "French": ("Invite envoyée : {}", "3 juil. 2026, 09:15:00 CEST"),
    "Japanese": ("プロンプト: {}", "2026/07/03 9:15:00 JST"),
    "Korean": ("프롬프트: {}", "2026. 7. 3. 오전 9:15:00 KST"),
    "German": ("Eingegebener Prompt: {}", "03.07.2026, 09:15:00 MESZ"),
    "Spanish": ("Has introducido\xa0{}", "3 jul 2026, 9:15:00 CEST"),
    "Turkish": ("Gönderilen istem: {}", "3 Tem 2026 09:15:00 GMT+3"),
    "Russian": ("Отправлен запрос: {}", "3 июл. 2026 г., 09:15:00 MSK"),
    "Portuguese": ("Prompt enviado: {}", "3 de jul. de 2026, 09:15:00 BRT"),
    "Italian": ("Prompt inviato: {}", "3 lug 2026, 09:15:00 CEST"),
    "Chinese": ("发送了提示 {}", "2026年7月3日 上午9:15:00 UTC+8"),
    "English": ("Prompted\xa0{}", "Jul 3, 2026, 9:15:00\u202fAM PDT"),
}  # fmt: skip
"""What stands before a prompt in Takeout's page, and a time."""


def write_page(path: Path, cells: list[tuple[str, str, str]]) -> Path:
    """Takeout's page of Gemini: prompts as it has them, times, replies as HTML."""
    text = "".join(
        '<div class="outer-cell mdl-cell"><div class="mdl-grid"><div class="header-cell">'
        '<p class="mdl-typography--title">Gemini Apps<br></p></div><div class="content-cell'
        f' mdl-cell">{prompt}<br>{time}<br>{reply}</div></div></div>'
        for prompt, time, reply in cells
    )
    path.write_text(f"<html><body>{text}</body></html>", "utf-8")
    return path


@each_row("language", PAGES)
def test_a_page_of_geminis(tmp_path: Path, language: str) -> None:
    before, time = PAGES[language]
    prompts = ["Where is the key?", "Translate: cat", "Thanks"]
    cells = [(before.format(said), time, "<p>Here.</p>") for said in prompts]
    found, _report = read_exports([write_page(tmp_path / "MyActivity.html", cells)])
    assert {str(m.content) for m in found.messages if m.type == "human"} == set(prompts)
    assert {m.additional_kwargs["time"][:16] for m in found.messages} == {"2026-07-03T09:15"}


CODE = "def area(w, h):\n    if w < 0:\n\n        return None\n\treturn w * h"


@pytest.mark.parametrize("kind", ["page", "json"])
def test_code_keeps_its_indentation(tmp_path: Path, kind: str) -> None:
    html = f"<p>So:</p><pre><code>\n{CODE.replace('<', '&lt;')}\n</code></pre><p>  Done.</p>"
    if kind == "page":
        path = write_page(
            tmp_path / "a.html", [("Prompted How?", "3 Jul 2026, 09:15:00 UTC", html)]
        )
    else:
        time = "2026-07-03T09:15:00Z"
        entry = {"header": "Gemini Apps", "title": "Prompted How?", "time": time}
        path = save(tmp_path / "a.json", [{**entry, "safeHtmlItem": [{"html": html}]}])
    found, _report = read_exports([path])
    assert found.messages[-1].content == f"So:\n\n{CODE}\n\nDone."


def test_what_was_forwarded_in_telegram_is_another_ones(tmp_path: Path) -> None:
    said = {"type": "message", "from": "Ann", "date_unixtime": "1767607200"}
    messages = [
        {**said, "id": 1, "text": "Look."},
        {**said, "id": 2, "text": "I live in Ghent.", "forwarded_from": "Dr Quill"},
        {**said, "id": 3, "text": "So do I.", "forwarded_from": None},
    ]
    found = read_one(save(tmp_path / "result.json", {"id": 7, "name": "Ann", "messages": messages}))
    assert [(m.name, m.content) for m in found.messages] == [
        ("Ann", "Look."),
        ("Dr Quill", "[forwarded by: Ann]\n\nI live in Ghent."),
        ("?", "[forwarded by: Ann]\n\nSo do I."),
    ]


def test_a_topic_of_a_telegram_group_is_a_conversation(tmp_path: Path) -> None:
    """With the replies to what was said in it, and the name that it was given last."""
    said = {"type": "message", "from": "Ann", "date_unixtime": "1767607200"}
    topic = {**said, "type": "service", "text": ""}
    messages = [
        {**topic, "id": 1, "action": "topic_created", "title": "Compost"},
        {**said, "id": 2, "text": "The bin is by the gate.", "reply_to_message_id": 1},
        {**said, "id": 3, "text": "Thanks.", "reply_to_message_id": 2},
        {**topic, "id": 4, "action": "topic_edit", "new_title": "Soil", "reply_to_message_id": 1},
        {**said, "id": 5, "text": "Who has the key?"},
    ]
    path = save(tmp_path / "result.json", {"id": 7, "name": "Garden", "messages": messages})
    assert [(c.title, [m.content for m in c.messages]) for c in read_exports([path])] == [
        (None, ["Who has the key?"]),
        ("Soil", ["The bin is by the gate.", "Thanks."]),
    ]


def test_a_block_without_a_type_is_what_it_looks_like(tmp_path: Path) -> None:
    blocks = [
        {"text": "The key"},
        {"image_url": {"url": "https://example.org/a.png"}},
        {"thinking": "Hm."},
        {"colour": "red"},
    ]
    found = read_one(save(tmp_path / "m.json", [{"role": "user", "content": blocks}]))
    assert [m.content for m in found.messages] == ["The key\n\n[image]"]
    assert found.skipped["reasoning"] == 1
    assert found.unread.counts == {"blocks of type None": 1}


def test_times_are_those_of_the_users_zone(tmp_path: Path) -> None:
    """An evening in New York is not the next day, in winter and in summer."""
    said = [
        {"role": "user", "content": "a", "time": "2026-01-16T03:30:00Z"},
        {"role": "user", "content": "b", "time": "2026-07-16T02:30:00+00:00"},
        {"role": "user", "content": "c", "time": "2026-07-20T12:00:00+08:00"},
        {"role": "user", "content": "d", "time": "2026-07-21 09:00:00"},
    ]
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, said)), "utf-8")
    found = read_one(tmp_path / "m.jsonl")
    found.fill_times(ZoneInfo("America/New_York"))
    assert [m.additional_kwargs["time"] for m in found.messages] == [
        "2026-01-15T22:30:00-05:00",
        "2026-07-15T22:30:00-04:00",
        "2026-07-20T12:00:00+08:00",
        "2026-07-21T09:00:00-04:00",
    ]
