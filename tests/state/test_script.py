"""Script detection."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.state.language import CJK_RANGES, measure_cjk_share


@each_row(
    ("text", "share"),
    [
        ("", 0.0),
        ("123 !? 👍", 0.0),
        ("。,!", 0.0),
        ("hello", 0.0),
        ("привет", 0.0),
        ("नमस्ते", 0.0),
        ("今天天气很好。", 1.0),
        ("ありがとう、カタカナー", 1.0),
        ("안녕하세요", 1.0),
        ("ㄅㄆㄇ", 1.0),
        ("ﾊﾝｶｸ", 1.0),
        ("𠀋𰻞", 1.0),
        ("第1个bug", 0.4),
        ("你好 ab", 0.5),
    ],
)
def test_share_of_letters(text: str, share: float) -> None:
    assert measure_cjk_share(text) == pytest.approx(share)


def test_ranges_are_sorted_and_disjoint() -> None:
    edges = [edge for pair in CJK_RANGES for edge in pair]
    assert edges == sorted(set(edges))


@given(st.text())
def test_share_is_a_share(text: str) -> None:
    assert 0.0 <= measure_cjk_share(text) <= 1.0


@given(st.text(), st.text())
def test_order_does_not_matter(left: str, right: str) -> None:
    assert measure_cjk_share(left + right) == measure_cjk_share(right + left)
