"""Names of sessions that people can type."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from topicloom import InvalidNameError
from topicloom_app.session_names import check_session_name, make_titled_name

names = st.text(st.characters(exclude_categories=()), min_size=1, max_size=80)
tricky = st.text("./\\~%2Ee:\0 aA", min_size=1, max_size=8)


@pytest.mark.parametrize("name", ["work", "Ann Lee", "v1.2", "日记", "_x-", "a" * 100])
def test_names_that_people_type_are_taken(name: str) -> None:
    assert check_session_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " a", ".a", "-a", "a..b", "a/b", "a\n", "a" * 101, "a\\b", "a:b"]
)
def test_typed_names_that_are_refused(name: str) -> None:
    with pytest.raises(InvalidNameError, match="letters, digits"):
        check_session_name(name)


@given(names | tricky)
def test_a_title_names_a_session_that_can_be_typed(title: str) -> None:
    if name := make_titled_name(title):
        assert check_session_name(name) == name


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Tea in Kyoto", "Tea in Kyoto"),
        ("Postgres: index on (jsonb)?", "Postgres index on jsonb"),
        ("红烧肉的做法", "红烧肉的做法"),
        ("..v1...2", "v1.2"),
        ("x" * 200, "x" * 80),
        ("???", ""),
        ("", ""),
    ],
)
def test_what_a_title_becomes(title: str, name: str) -> None:
    assert make_titled_name(title) == name
