"""What every storage has to do, on each kind of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dict_storage import DictStorage

from topicloom import Storage
from topicloom.testing import StorageCheck, list_storage_checks


@pytest.mark.parametrize("check", list_storage_checks(), ids=lambda check: check.__name__)
def test_a_storage_keeps_the_contract(check: StorageCheck, reopen: Callable[[], Storage]) -> None:
    check(reopen)


def test_a_storage_that_forgets_does_not() -> None:
    check, *_ = list_storage_checks()
    with pytest.raises(Exception, match="is not in chain"):
        check(lambda: DictStorage({}))
