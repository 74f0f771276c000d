"""A purge reaches the checkpoints of the thread, and the thread goes on."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from postgres import open_postgres
from sessions import chatter, check_kept, kept, open_graph, tell, thread

from topicloom import (
    FileStorage,
    InputError,
    Memory,
    ReplyError,
    ReplyRequest,
    get_session,
)
from topicloom.hosting import REMOVED, get_text
from topicloom.testing import ScriptedResponder, fake_roles

SECRET = "XSECRETX"
Place = tuple[BaseCheckpointSaver[Any], Callable[[], str]]
"""A checkpointer, and all that it keeps, as it is written."""


class ForeignSaver(BaseCheckpointSaver[Any]):
    """A checkpointer that can do no more than it has to."""

    def __init__(self) -> None:
        super().__init__()
        self._inner = InMemorySaver()
        for name in ("get_tuple", "list", "put", "put_writes", "get_next_version"):
            setattr(self, name, getattr(self._inner, name))


def in_memory(saver: InMemorySaver) -> str:
    return str((saver.storage, saver.blobs, saver.writes))


def in_files(folder: Path) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in folder.iterdir())


def in_rows(saver: Any) -> str:
    with saver.conn.cursor() as cursor:
        tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        rows = [cursor.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    return str(rows)


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "memory":
        saver = InMemorySaver()
        yield saver, lambda: in_memory(saver)
        return
    if request.param == "sqlite":
        (tmp_path / "db").mkdir()
        with SqliteSaver.from_conn_string(str(tmp_path / "db" / "c.sqlite")) as saved:
            saved.conn.execute("PRAGMA secure_delete = OFF")  # as it is in most builds of SQLite
            yield saved, lambda: in_files(tmp_path / "db")
        return
    module = importlib.import_module("langgraph.checkpoint.postgres")
    with open_postgres() as uri, module.PostgresSaver.from_conn_string(uri) as rows:
        rows.setup()
        yield rows, lambda: in_rows(rows)


def talk(folder: Path, saver: BaseCheckpointSaver[Any]) -> Any:
    """A session of two threads in which a secret was told early and in the newest turn."""
    graph = open_graph(folder, checkpointer=saver, window=1_000)
    texts = [chatter("茶山"[n % 2], n, characters=150) for n in range(10)]
    told = [f"{texts[0]} {SECRET}", *texts[1:9], f"{SECRET} again"]
    tell(graph, thread(), *told)
    tell(graph, thread("other"), *texts[:2])
    return graph


def forget(graph: Any, numbers: list[int]) -> tuple[str, ...]:
    return Memory.of(graph, thread()).forget(*(f"m{number}" for number in numbers)).left


def secret_messages(folder: Path, graph: Any) -> list[int]:
    session = get_session(graph, thread())
    return [m.seq for m in kept(folder, session).messages(session) if SECRET in m.text]


@pytest.mark.slow
def test_nothing_of_it_is_left_and_the_thread_goes_on(tmp_path: Path, place: Place) -> None:
    saver, everything = place
    folder = tmp_path / "sessions"
    graph = talk(folder, saver)
    assert SECRET in everything()
    session = get_session(graph, thread())
    others = len(list(saver.list(thread("other"))))
    assert forget(graph, secret_messages(folder, graph)) == ()
    assert SECRET not in everything()
    assert len(list(saver.list(thread()))) == 1
    assert len(list(saver.list(thread("other")))) == others
    again = open_graph(folder, checkpointer=saver, window=1_000)
    purges = FileStorage(folder).open("s").purges
    assert purges != session.purges == 0
    assert get_session(again, thread()) == session.model_copy(update={"purges": purges})
    tell(again, thread(), "新的问题", "还有一个")
    after = get_session(again, thread())
    assert after.count == session.count + 4
    messages = check_kept(kept(folder, after), after)
    assert [m.seq for m in messages if m.text == REMOVED] == [1, session.count - 1]
    assert SECRET not in everything()


@pytest.mark.slow
def test_one_that_was_killed_before_the_checkpoints_is_finished(tmp_path: Path) -> None:
    saver = InMemorySaver()
    graph = talk(tmp_path, saver)
    numbers = secret_messages(tmp_path, graph)
    session = get_session(graph, thread())
    store = kept(tmp_path, session)
    store.purge(store.plan_purge(session, numbers))
    assert SECRET in in_memory(saver)
    assert store.plan_purge(session, numbers).messages == ()
    assert forget(graph, numbers) == ()
    assert SECRET not in in_memory(saver)


@pytest.mark.slow
def test_what_a_checkpointer_cannot_do_is_said(tmp_path: Path) -> None:
    saver = ForeignSaver()
    graph = talk(tmp_path, saver)
    before = len(list(saver.list(thread())))
    [left] = forget(graph, secret_messages(tmp_path, graph))
    assert len(list(saver.list(thread()))) == before + 1
    assert "older checkpoints of the thread: ForeignSaver cannot remove them" in left
    assert SECRET not in str(graph.get_state(thread()))


@pytest.mark.slow
def test_a_file_that_another_reads_is_said(tmp_path: Path) -> None:
    path = str(tmp_path / "c.sqlite")
    with SqliteSaver.from_conn_string(path) as saver, SqliteSaver.from_conn_string(path) as other:
        saver.conn.execute("PRAGMA busy_timeout = 1")
        graph = talk(tmp_path / "sessions", saver)
        reading = other.conn.execute("SELECT * FROM checkpoints")
        assert reading.fetchone()
        left = "free pages of the checkpoints' file, which another process uses"
        assert forget(graph, [1]) == (left,)
        reading.close()
        assert forget(graph, [1]) == ()


def test_what_a_provider_refuses_again_and_again_is_forgotten(tmp_path: Path) -> None:
    """A filter refuses the prompt for a message in it: each later turn has it in view, too."""

    def reply(request: ReplyRequest) -> str:
        if any(SECRET in get_text(m) for m in request.messages):
            raise RuntimeError("content management policy")
        return "好。"

    roles = fake_roles(ScriptedResponder(otherwise=reply))
    graph = open_graph(tmp_path, roles, checkpointer=InMemorySaver())
    tell(graph, thread(), "茶。")
    for text in (f"茶：{SECRET}。", "海？"):
        with pytest.raises(ReplyError, match="content management policy"):
            tell(graph, thread(), text)
    Memory.of(graph, thread()).forget("m3")
    tell(graph, thread(), "山？")
    assert [m.text for m in Memory.of(graph, thread()).history()] == [
        *("茶。", "好。", REMOVED, "海？", "山？", "好。")
    ]


@pytest.mark.slow
def test_a_turn_that_is_not_finished_is_not_purged_beside(tmp_path: Path) -> None:
    graph = talk(tmp_path, InMemorySaver())
    session = get_session(graph, thread())
    graph.update_state(thread(), {"messages": []}, as_node="assemble")
    with pytest.raises(InputError, match="not finished"):
        forget(graph, [1])
    assert secret_messages(tmp_path, graph) == [1, session.count - 1]
