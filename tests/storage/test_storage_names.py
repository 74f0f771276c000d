"""Names from outside as names of files."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hypothesis import example, given, strategies as st

from topicloom import InvalidNameError
from topicloom.hosting import safe_name
from topicloom.storage.names import original_name
from topicloom.storage.store_items import label

names = st.text(st.characters(exclude_categories=()), min_size=1, max_size=80)
tricky = st.text("./\\~%2Ee:\0 aA", min_size=1, max_size=8)


@given(names | tricky)
@example("..")
@example(".")
@example("../../etc/passwd")
@example("C:\\x")
@example("a/../b")
def test_a_safe_name_stays_in_its_folder(name: str) -> None:
    safe = safe_name(name)
    for kind in (PurePosixPath, PureWindowsPath):
        assert (kind("root") / safe).parts == ("root", safe)
    assert ".." not in safe
    assert not safe.startswith(".")
    assert not safe.endswith(".")
    assert safe.isascii()
    assert len(safe) <= 150
    assert "." not in label(name)


@given(names | tricky)
def test_a_safe_name_can_be_undone(name: str) -> None:
    safe = safe_name(name)
    assert original_name(safe) == (None if "~" in safe else name)


@given(st.lists(tricky | names, unique=True, max_size=20))
def test_no_two_names_share_one(distinct: list[str]) -> None:
    assert len({safe_name(name) for name in distinct}) == len(distinct)
    assert len({label(name) for name in distinct}) == len(distinct)


def test_ordinary_names_stay_readable() -> None:
    assert safe_name("thread-42_b.v2") == "thread-42_b.v2"
    assert safe_name("Ann Lee") == "Ann%20Lee"
    assert safe_name(".hidden") == "%2Ehidden"
    assert safe_name("a..b.") == "a.%2Eb%2E"


def test_long_names_are_cut_and_stay_distinct() -> None:
    names = ["é" * 60 + end for end in "ab"] + ["x" * 151, "x" * 152]
    safe = [safe_name(name) for name in names]
    assert len(set(safe)) == 4
    assert all(len(name) <= 133 and "~" in name for name in safe)
    assert safe_name("x" * 150) == "x" * 150
    assert [original_name(name) for name in safe] == [None] * 4


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(InvalidNameError, match="empty"):
        safe_name("")
