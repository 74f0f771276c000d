"""What every storage has to do, on each kind of it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from topicloom import InputError, InvalidNameError, MissingRecordError, SessionBusyError, Storage

Reopen = Callable[[], Storage]


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def texts(bodies: list[dict[str, Any]]) -> list[str]:
    return [body["text"] for body in bodies]


def test_what_is_appended_is_read_by_everybody(reopen: Reopen) -> None:
    log = reopen().open("s")
    first = log.append("ranges", None, said("a", "b"))
    head = log.append("ranges", first, said("c"))
    for reader in (log, reopen().open("s")):
        refs = reader.refs("ranges", head)
        assert len(refs) == 3
        assert refs[-1] == head
        assert texts(reader.read("ranges", refs)) == ["a", "b", "c"]
        assert texts(reader.read("ranges", refs[::-1])) == ["c", "b", "a"]
        assert reader.reports() == []


def test_an_empty_session_reads_as_empty(reopen: Reopen) -> None:
    storage = reopen()
    log = storage.open("s")
    assert log.refs("transcript", None) == []
    assert log.read("transcript", []) == []
    assert log.append("transcript", None, []) is None
    assert storage.sessions() == []


def test_fork_sees_only_its_own_branch(reopen: Reopen) -> None:
    log = reopen().open("s")
    trunk = log.append("c", None, said("a", "b"))
    left = log.append("c", trunk, said("left 1"))
    seen = log.refs("c", left)
    right = log.append("c", trunk, said("right 1"))
    left = log.append("c", left, said("left 2"))
    right = log.append("c", right, said("right 2", "right 3"))
    for reader in (log, reopen().open("s")):
        assert texts(reader.read("c", reader.refs("c", left))) == ["a", "b", "left 1", "left 2"]
        assert texts(reader.read("c", reader.refs("c", right)))[2:] == [f"right {i}" for i in "123"]
        assert texts(reader.read("c", reader.refs("c", trunk))) == ["a", "b"]
    assert texts(log.read("c", seen)) == ["a", "b", "left 1"]


def test_the_same_again_is_the_same(reopen: Reopen) -> None:
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


def test_same_body_twice_is_two_entries(reopen: Reopen) -> None:
    log = reopen().open("s")
    head = log.append("c", None, said("ok", "ok"))
    assert texts(log.read("c", log.refs("c", head))) == ["ok", "ok"]


def test_an_unknown_head_is_an_error_that_names_it(reopen: Reopen) -> None:
    storage = reopen()
    log = storage.open("s")
    with pytest.raises(MissingRecordError, match="0123456789abcdef"):
        log.append("c", "0123456789abcdef", said("x"))
    with pytest.raises(MissingRecordError, match="0123456789abcdef"):
        log.refs("c", "0123456789abcdef")
    with pytest.raises(MissingRecordError, match="session 's'"):
        log.read("c", ["0123456789abcdef"])
    assert storage.sessions() == []


def test_chains_and_sessions_are_apart(reopen: Reopen) -> None:
    storage = reopen()
    head = storage.open("s").append("ranges", None, said("x"))
    for session, chain in (("s", "ranges0"), ("s", "range"), ("s2", "ranges")):
        with pytest.raises(MissingRecordError):
            storage.open(session).refs(chain, head)


def test_text_comes_back_as_it_was(reopen: Reopen) -> None:
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


def test_bodies_of_megabytes_are_kept_whole(reopen: Reopen) -> None:
    log = reopen().open("s")
    big = "x" * 3_000_000
    head = log.append("c", None, said(big, "small", "y" + big))
    got = reopen().open("s")
    assert texts(got.read("c", got.refs("c", head))) == [big, "small", "y" + big]


def test_many_entries_are_read_in_order(reopen: Reopen) -> None:
    bodies = [{"n": n} for n in range(1234)]
    head = reopen().open("s").append("c", None, bodies)
    log = reopen().open("s")
    head = log.append("c", head, [{"n": 1234}])
    assert log.read("c", log.refs("c", head)) == [*bodies, {"n": 1234}]


def test_what_was_read_is_the_readers(reopen: Reopen) -> None:
    log = reopen().open("s")
    head = log.append("c", None, [{"deep": {"list": [1]}}])
    refs = log.refs("c", head)
    first, twin = log.read("c", [*refs, *refs])
    first["deep"]["list"].append(2)
    assert twin == log.read("c", refs)[0] == {"deep": {"list": [1]}}


@pytest.mark.parametrize(
    "body", [{"prev": 1}, {"ref": 1}, {"purged": 1}, {"x": {1}}, {"x": float("nan")}]
)
def test_bodies_that_are_refused(reopen: Reopen, body: dict[str, Any]) -> None:
    log = reopen().open("s")
    with pytest.raises(InputError):
        log.append("c", None, [{"fine": 1}, body])
    assert log.refs("c", None) == []


def test_sessions_by_their_true_names(reopen: Reopen) -> None:
    storage = reopen()
    names = ["a", "a.b", "Ünï/../code", "long " * 100, "..", "\x00", "c\ud800", "%sessions", "x~y"]
    for name in names:
        storage.open(name).append("c", None, said(name[:1]))
    for name in names:
        assert storage.open(name) is storage.open(name)
    assert reopen().sessions() == sorted(names)


def test_empty_names_are_refused(reopen: Reopen) -> None:
    with pytest.raises(InvalidNameError):
        reopen().open("")
    with pytest.raises(InvalidNameError):
        reopen().open("s").append("", None, said("x"))


def test_a_lock_keeps_others_out_of_one_session(reopen: Reopen) -> None:
    storage = reopen()
    with storage.lock("s"):
        with pytest.raises(SessionBusyError, match="'s'"), storage.lock("s"):
            pass
        with storage.lock("other"):
            pass
        assert storage.open("s").append("c", None, said("x"))
    with storage.lock("s"):
        pass


def test_threads_append_at_once(reopen: Reopen) -> None:
    log = reopen().open("s")
    heads: dict[int, str | None] = {}

    def grow(worker: int) -> None:
        head = None
        for turn in range(10):
            head = log.append("c", head, said(f"{worker}.{turn}"))
            log.read("c", log.refs("c", head))
        heads[worker] = head

    threads = [Thread(target=grow, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker, head in heads.items():
        refs = log.refs("c", head)
        assert texts(log.read("c", refs)) == [f"{worker}.{turn}" for turn in range(10)]
