"""Our tokens are those of the reference, which the encoders were trained with."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings, strategies as st
from tokenizers import Tokenizer

from topicloom import find_sample, load_conversations
from topicloom.index.bundled import BGE_CHINESE, MAX_TOKENS, MINILM, MODEL_FOLDER, BundledModel
from topicloom.index.wordpiece import WordPiece

MODELS = pytest.mark.parametrize("model", [MINILM, BGE_CHINESE], ids=lambda m: m.name)


@cache
def pair(model: BundledModel) -> tuple[WordPiece, Tokenizer]:
    """Ours and the reference."""
    path = MODEL_FOLDER / model.tokenizer
    reference = Tokenizer.from_file(str(path))
    reference.enable_truncation(MAX_TOKENS)
    reference.encode_special_tokens = True  # a text that says "[SEP]" means the characters
    return WordPiece(path, MAX_TOKENS), reference


@MODELS
def test_what_people_say_and_what_is_odd(model: BundledModel) -> None:
    ours, reference = pair(model)
    said = [m.text for c in load_conversations(find_sample()) for m in c.messages]
    odd = ["", " \t\r\n", "[CLS] a [SEP] [UNK]", "a\x00b\u200bc\ufffdd", "naïve CAFÉ İstanbul ΣΑΣ"]
    odd += [
        "x" * 100,
        "x" * 101,
        "去" * 999,
        "我的 Rust-daemon，好吗？",
        "🥲 ok 👍🏽",
        "한국어 カタカナ",
    ]
    for text in said + odd:
        assert ours.encode(text) == reference.encode(text).ids, text[:60]


# Unicode up to version 8, which is what the reference knows.
@settings(max_examples=300)
@given(
    st.text(
        st.one_of(
            st.characters(max_codepoint=0x52F),
            st.characters(min_codepoint=0x2000, max_codepoint=0x206F),
            st.characters(min_codepoint=0x3000, max_codepoint=0x30FF),
            st.characters(min_codepoint=0x4E00, max_codepoint=0x9FCC),
            st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3),
            st.characters(min_codepoint=0xF900, max_codepoint=0xFA6D),
        )
    )
)
def test_any_text(text: str) -> None:
    for model in (MINILM, BGE_CHINESE):
        ours, reference = pair(model)
        assert ours.encode(text) == reference.encode(text).ids
