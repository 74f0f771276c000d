"""Marks of citations become links, or go."""

from __future__ import annotations

from typing import Any

from tables import each_row

from topicloom_app.recordings.formats.citations import resolve_marks, resolve_numbers

CITE = "\ue200cite\ue202turn0search1\ue202turn0search3\ue201"
PAGE = {"title": "Rent  law", "url": "https://example.org/rent"}
LINK = "[Rent law](https://example.org/rent)"


@each_row(
    ("text", "metadata", "read"),
    [
        (f"So {CITE}.", {}, "So."),
        (f"So {CITE}.", {"content_references": [{"matched_text": CITE, "alt": "(x)"}]}, "So (x)."),
        (
            f"So {CITE}.",
            {"content_references": [{"matched_text": CITE, "items": [PAGE, PAGE]}]},
            f"So ({LINK}, {LINK}).",
        ),
        ("See 【12†source】 and 【4:0†a.pdf】.", {}, "See and."),
        (
            "See 【12†source】.",
            {"citations": [{"start_ix": 4, "end_ix": 15, "metadata": PAGE}]},
            f"See ({LINK}).",
        ),
        ('In \ue200entity\ue202["city","Ostend","x"]\ue201.', {}, "In Ostend."),
        ("At \ue200url\ue202Rent law\ue202turn0search1\ue201.", {}, "At Rent law."),
        ("\ue200image_group\ue202{}\ue201Rain", {}, "Rain"),
        ("a \ue200cite without an end", {}, "a cite without an end"),
        ("【注意】別", {}, "【注意】別"),
        (f"x {CITE}", {"content_references": [7, {"matched_text": 7}], "citations": [7]}, "x"),
    ],
)
def test_marks_of_chatgpt_become_links(text: str, metadata: dict[str, Any], read: str) -> None:
    assert resolve_marks(text, metadata) == read


def test_numbers_of_deepseek_become_links() -> None:
    sources = [PAGE, {"cite_index": 7, "url": "https://example.org"}, None]
    text = "Tuna [citation:1], milk [citation:7][citation:9]."
    link = "[https://example.org](https://example.org)"
    assert resolve_numbers(text, sources) == f"Tuna ({LINK}), milk ({link})."
