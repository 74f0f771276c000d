"""Blocks are told by their form: any with bytes is media, any with a text in it is text."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from tables import each_row

from topicloom.context.token_count import IMAGE_TOKENS, EstimatingCounter
from topicloom.state.content_blocks import get_block_text, get_media_kind, give_back, is_text
from topicloom.state.stored_message import to_stored_message

BYTES = "QUJD" * 50_000
COUNTER = EstimatingCounter("o200k")

MEDIA: list[tuple[dict[str, Any], str]] = [
    ({"type": "media", "mime_type": "application/pdf", "data": BYTES}, "file"),
    ({"type": "media", "mime_type": "video/mp4", "file_uri": "https://a/b"}, "video"),
    ({"type": "video_url", "video_url": {"url": "data:video/mp4;base64," + BYTES}}, "video"),
    ({"type": "audio_url", "audio_url": {"url": "https://a/b.wav"}}, "audio"),
    ({"type": "hologram", "hologram": {"url": "data:image/png;base64," + BYTES}}, "image"),
    ({"type": "hologram", "source": {"media_type": "audio/wav", "data": BYTES}}, "audio"),
    ({"type": "document", "source": {"type": "base64", "data": BYTES}}, "file"),
    ({"type": "file", "file": {"file_data": "data:application/pdf;base64," + BYTES}}, "file"),
    ({"type": "image_generation_call", "id": "ig_1", "result": BYTES}, "image"),
    ({"type": "text-plain", "base64": BYTES, "mime_type": "text/plain"}, "file"),
]
TEXTS: list[tuple[dict[str, Any], str]] = [
    ({"type": "text", "text": "said"}, "said"),
    ({"type": "input_text", "text": "said"}, "said"),
    ({"type": "text-plain", "text": "said", "mime_type": "text/plain"}, "said"),
    ({"type": "file", "source_type": "text", "text": "said"}, "said"),
    ({"type": "document", "source": {"type": "text", "data": "said"}}, "said"),
    ({"type": "document", "source": {"type": "content", "content": "said"}}, "said"),
    (
        {"type": "document", "title": "Lease", "source": {"type": "text", "data": "said"}},
        "Lease\nsaid",
    ),
    (
        {
            "type": "search_result",
            "source": "https://a",
            "title": "A",
            "content": [{"type": "text", "text": "said"}, {"type": "text", "text": "more"}],
        },
        "A\nsaid\nmore",
    ),
]
NEITHER: list[dict[str, Any]] = [
    {"type": "redacted_thinking", "data": BYTES},
    {"type": "compaction", "encrypted_content": BYTES},
    {"type": "tool_use", "id": "a", "name": "f", "input": {"data": "data:image/png;base64,QUJD"}},
    {"type": "web_search_tool_result", "content": [{"encrypted_content": "x"}]},
    {"type": "reasoning", "encrypted_content": "x"},
]


@each_row(("block", "kind"), MEDIA)
def test_media_blocks_are_kept_and_hardly_counted(block: dict[str, Any], kind: str) -> None:
    assert get_media_kind(block) == kind
    assert get_block_text(block) == ""
    assert COUNTER.message(HumanMessage([block])) < IMAGE_TOKENS + 50
    assert to_stored_message(HumanMessage([block]), seq=1, time="").media == [block]


@each_row(("block", "text"), TEXTS)
def test_text_blocks_are_texts(block: dict[str, Any], text: str) -> None:
    assert get_media_kind(block) is None
    assert is_text(block)
    stored = to_stored_message(HumanMessage([block]), seq=1, time="")
    assert (stored.text, stored.media) == (text, [])
    assert COUNTER.message(HumanMessage([block])) == COUNTER.message(HumanMessage(text))


@each_row("block", NEITHER)
def test_blocks_that_are_neither_text_nor_media(block: dict[str, Any]) -> None:
    assert get_media_kind(block) is None
    assert not is_text(block)


def test_an_image_that_a_model_made_is_brought_back_as_a_users() -> None:
    made = {"type": "image_generation_call", "id": "ig_1", "result": "QUJD"}
    assert give_back(made) == {"type": "image", "base64": "QUJD", "mime_type": "image/png"}
    assert give_back({"type": "image", "url": "https://a"}) == {"type": "image", "url": "https://a"}


def test_what_says_how_content_is_read_is_kept_and_nothing_else() -> None:
    told = {"output_version": "v1", "model_provider": "anthropic", "id": "x", "headers": {"a": "b"}}
    blocks: list[Any] = [{"type": "text", "text": "said"}]
    stored = to_stored_message(AIMessage(blocks, response_metadata=told), seq=1, time="")
    kept = {"output_version": "v1", "model_provider": "anthropic"}
    assert stored.message.response_metadata == kept
    plain = to_stored_message(AIMessage("said", response_metadata=told), seq=1, time="")
    assert plain.whole is None
