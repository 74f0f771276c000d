"""Bodies and refs of chains, as hypothesis draws them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

text = st.text(st.characters(exclude_categories=()), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
bodies = st.dictionaries(
    text.filter(lambda key: key not in ("prev", "ref", "purged")), values, max_size=4
)
refs = st.text("0123456789abcdef", min_size=16, max_size=16)


def joined(data: Any) -> Any:
    """Data as JSON can hold it: a high surrogate before a low one is one character."""
    return json.loads(json.dumps(data))
