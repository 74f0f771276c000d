"""What every storage has to do: a suite that somebody's own storage can run, with any test runner.

Each check takes a function that opens one empty place again, as another process would.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import numpy as np

from topicloom.errors import InputError, InvalidNameError, MissingRecordError, SessionBusyError
from topicloom.storage.base import Storage

Reopen = Callable[[], Storage]
Check = Callable[[Reopen], None]
_checks: list[Check] = []


def _check(check: Check) -> Check:
    _checks.append(check)
    return check


@contextmanager
def _raises(error: type[Exception], match: str = "") -> Iterator[None]:
    told = f"{error.__name__} was not raised"
    try:
        yield
    except error as caught:
        told = "" if re.search(match, str(caught)) else f"{caught} does not name {match}"
    if told:
        raise AssertionError(told)


def _said(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def _texts(bodies: list[dict[str, Any]]) -> list[str]:
    return [body["text"] for body in bodies]


@_check
def what_is_appended_is_read_by_everybody(reopen: Reopen) -> None:
    log = reopen().open("s")
    first = log.append("ranges", None, _said("a", "b"))
    head = log.append("ranges", first, _said("c"))
    for reader in (log, reopen().open("s")):
        refs = reader.refs("ranges", head)
        assert len(refs) == 3
        assert refs[-1] == head
        assert _texts(reader.read("ranges", refs)) == ["a", "b", "c"]
        assert _texts(reader.read("ranges", refs[::-1])) == ["c", "b", "a"]
        assert reader.reports() == []


@_check
def an_empty_session_reads_as_empty(reopen: Reopen) -> None:
    storage = reopen()
    log = storage.open("s")
    assert log.refs("transcript", None) == []
    assert log.read("transcript", []) == []
    assert log.append("transcript", None, []) is None
    assert storage.sessions() == []


@_check
def fork_sees_only_its_own_branch(reopen: Reopen) -> None:
    log = reopen().open("s")
    trunk = log.append("c", None, _said("a", "b"))
    left = log.append("c", trunk, _said("left 1"))
    seen = log.refs("c", left)
    right = log.append("c", trunk, _said("right 1"))
    left = log.append("c", left, _said("left 2"))
    right = log.append("c", right, _said("right 2", "right 3"))
    for reader in (log, reopen().open("s")):
        assert _texts(reader.read("c", reader.refs("c", left))) == ["a", "b", "left 1", "left 2"]
        assert _texts(reader.read("c", reader.refs("c", right)))[2:] == [
            f"right {i}" for i in "123"
        ]
        assert _texts(reader.read("c", reader.refs("c", trunk))) == ["a", "b"]
    assert _texts(log.read("c", seen)) == ["a", "b", "left 1"]


@_check
def the_same_again_is_the_same(reopen: Reopen) -> None:
    log = reopen().open("s")
    head = log.append("c", None, [{"n": 1, "time": "08:00"}, {"n": 2, "time": "08:00"}])
    again = reopen().open("s")
    assert again.append("c", None, [{"n": 1, "time": "09:00"}]) == log.refs("c", head)[0]
    later = again.append("c", None, [{"n": n, "time": "09:00"} for n in (1, 2, 3)])
    assert [b["time"] for b in again.read("c", again.refs("c", later))] == [
        "08:00",
        "08:00",
        "09:00",
    ]
    assert list(again.refs("c", later))[1] == head


@_check
def same_body_twice_is_two_entries(reopen: Reopen) -> None:
    log = reopen().open("s")
    head = log.append("c", None, _said("ok", "ok"))
    assert _texts(log.read("c", log.refs("c", head))) == ["ok", "ok"]


@_check
def an_unknown_head_is_an_error_that_names_it(reopen: Reopen) -> None:
    storage = reopen()
    log = storage.open("s")
    with _raises(MissingRecordError, match="0123456789abcdef"):
        log.append("c", "0123456789abcdef", _said("x"))
    with _raises(MissingRecordError, match="0123456789abcdef"):
        log.refs("c", "0123456789abcdef")
    with _raises(MissingRecordError, match="session 's'"):
        log.read("c", ["0123456789abcdef"])
    assert storage.sessions() == []


@_check
def chains_and_sessions_are_apart(reopen: Reopen) -> None:
    storage = reopen()
    head = storage.open("s").append("ranges", None, _said("x"))
    for session, chain in (("s", "ranges0"), ("s", "range"), ("s2", "ranges")):
        with _raises(MissingRecordError):
            storage.open(session).refs(chain, head)


@_check
def text_comes_back_as_it_was(reopen: Reopen) -> None:
    bodies: list[dict[str, Any]] = [
        {"z": '你好 \U0001f600 \u2028 \x00 \x7f \r\n\t\\"', "a": ["e\u0301", "\u00e9"]},
        {"lone": "high \ud83d low \ude00 end", "key \udc80": "\ud800"},
        {"numbers": [1, 1.0, 1e22, 1e-7, -0.0, 2**70], "none": None, "yes": True, "e": {}},
        {},
    ]
    log = reopen().open("s")
    head = log.append("c", None, bodies)
    got = reopen().open("s")
    back = got.read("c", got.refs("c", head))
    assert repr(back) == repr(bodies)


@_check
def bodies_of_megabytes_are_kept_whole(reopen: Reopen) -> None:
    log = reopen().open("s")
    big = "x" * 3_000_000
    head = log.append("c", None, _said(big, "small", "y" + big))
    got = reopen().open("s")
    assert _texts(got.read("c", got.refs("c", head))) == [big, "small", "y" + big]


@_check
def many_entries_are_read_in_order(reopen: Reopen) -> None:
    bodies = [{"n": n} for n in range(1234)]
    head = reopen().open("s").append("c", None, bodies)
    log = reopen().open("s")
    head = log.append("c", head, [{"n": 1234}])
    assert log.read("c", log.refs("c", head)) == [*bodies, {"n": 1234}]


@_check
def what_was_read_is_the_readers(reopen: Reopen) -> None:
    log = reopen().open("s")
    head = log.append("c", None, [{"deep": {"list": [1]}}])
    refs = log.refs("c", head)
    first, twin = log.read("c", [*refs, *refs])
    first["deep"]["list"].append(2)
    assert twin == log.read("c", refs)[0] == {"deep": {"list": [1]}}


@_check
def bodies_that_are_refused(reopen: Reopen) -> None:
    log = reopen().open("s")
    refused: list[dict[str, Any]] = [
        {"prev": 1},
        {"ref": 1},
        {"purged": 1},
        {"x": {1}},
        {"x": float("nan")},
    ]
    for body in refused:
        with _raises(InputError):
            log.append("c", None, [{"fine": 1}, body])
        assert log.refs("c", None) == []


@_check
def sessions_by_their_true_names(reopen: Reopen) -> None:
    storage = reopen()
    names = ["a", "a.b", "Ünï/../code", "long " * 100, "..", "\x00", "c\ud800", "%sessions", "x~y"]
    for name in names:
        storage.open(name).append("c", None, _said(name[:1]))
    for name in names:
        assert storage.open(name) is storage.open(name)
    assert reopen().sessions() == sorted(names)


@_check
def empty_names_are_refused(reopen: Reopen) -> None:
    with _raises(InvalidNameError):
        reopen().open("")
    with _raises(InvalidNameError):
        reopen().open("s").append("", None, _said("x"))


@_check
def a_lock_keeps_others_out_of_one_session(reopen: Reopen) -> None:
    storage = reopen()
    with storage.lock("s"):
        with _raises(SessionBusyError, match="'s'"), storage.lock("s"):
            pass
        with storage.lock("other"):
            pass
        assert storage.open("s").append("c", None, _said("x"))
    with storage.lock("s"):
        pass


@_check
def threads_append_at_once(reopen: Reopen) -> None:
    log = reopen().open("s")
    heads: dict[int, str | None] = {}

    def grow(worker: int) -> None:
        head = None
        for turn in range(10):
            head = log.append("c", head, _said(f"{worker}.{turn}"))
            log.read("c", log.refs("c", head))
        heads[worker] = head

    threads = [Thread(target=grow, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker, head in heads.items():
        refs = log.refs("c", head)
        assert _texts(log.read("c", refs)) == [f"{worker}.{turn}" for turn in range(10)]


@_check
def a_purged_body_is_gone_and_its_place_stays(reopen: Reopen) -> None:
    storage = reopen()
    log = storage.open("s")
    head = log.append("c", None, _said("a", "secret", "b"))
    refs = log.refs("c", head)
    for _ in range(2):
        log.purge("c", [refs[1]], {refs[1]: {"seq": 2}})
    for reader in (log, reopen().open("s")):
        assert list(reader.refs("c", head)) == list(refs)
        left = reader.read("c", refs)
        assert [body.get("text") for body in left] == ["a", None, "b"]
        assert left[1]["seq"] == 2
    storage.delete("s")
    assert reopen().sessions() == []


@_check
def vectors_come_back_by_key(reopen: Reopen) -> None:
    keys = [f"{n:x}" * 16 for n in range(1, 6)]
    vectors = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
    log = reopen().open("s").vectors("a space")
    log.append(keys[:2], vectors[:2])
    log.append(keys[2:], vectors[2:])
    found, rows = reopen().open("s").vectors("a space").load()
    assert sorted(found) == keys
    np.testing.assert_allclose(rows[np.argsort(found)], vectors, atol=1e-3)
    log.remove(keys[:1])
    assert sorted(reopen().open("s").vectors("a space").load()[0]) == keys[1:]
    assert reopen().open("s").vectors("other").load()[0] == []


def list_storage_checks() -> tuple[Check, ...]:
    """All checks: `for check in list_storage_checks(): check(reopen)`, an empty place for each."""
    return tuple(_checks)
