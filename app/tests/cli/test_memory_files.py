"""Memory files: what stands in them, and that nobody's work is written over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from reviewed import CONFIG, World
from sessions import tell

from topicloom import (
    FileStorage,
    Session,
    SessionStore,
    StorageUnavailableError,
    StoredMessage,
    Topic,
)
from topicloom.hosting import TopicTable
from topicloom.state.lifecycle import mark_archived, mark_divided
from topicloom.storage.topic_changes import merge_topics
from topicloom_app import MemoryFiles, MemoryReport
from topicloom_app.cli.memory import build_pages, make_file_name, read_stamp, render_page

yaml: Any = pytest.importorskip("yaml")  # it comes with langchain-core


class Place:
    """A session of three topics in a folder, and a folder of memory files beside it."""

    def __init__(self, root: Path, name: str = "house") -> None:
        self.out = root / "memory"
        self.storage = FileStorage(root / "sessions", fsync=False)
        self.store = SessionStore(self.storage.open(name))
        said = [
            StoredMessage(
                seq=n,
                role="assistant" if n % 2 == 0 else "user",
                text=f"{'Understood' if n % 2 == 0 else ('oak worktop', 'roof tiles')[n > 4]} {n}",
                time=f"2026-03-{n:02}T09:00:00+01:00",
            )
            for n in range(1, 9)
        ]
        self.session = self.store.append(Session(id=name), said)
        kitchen = Topic(id="t1", name="Kitchen", brief="All about the kitchen.")
        roof = Topic(id="t2", name="Roof", brief="All about the roof.")
        empty = Topic(id="t3", name="Nothing yet")
        self.session, kitchen = self.store.assign(self.session, kitchen, said[:4])
        self.session, roof = self.store.assign(self.session, roof, said[4:])
        self.save(kitchen, roof, empty)

    def topic(self, topic: str) -> Topic:
        return self.store.topic_table(self.session)[topic]

    def save(self, *topics: Topic) -> None:
        self.session = self.store.save_topics(self.session, topics)

    def change(self, topic: str, **fields: Any) -> None:
        self.save(self.topic(topic).model_copy(update=fields))

    def update(self, *, force: bool = False) -> MemoryReport:
        return MemoryFiles(self.out, self.storage).update(self.session, force=force)

    def path(self, topic: str) -> Path:
        return self.out / f"{self.session.id}-{topic}.md"

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Contents and times of change of all files."""
        return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in self.out.iterdir()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def parsed(path: Path) -> tuple[dict[str, Any], str]:
    """Front matter, as any YAML parser reads it, and the rest."""
    _, matter, body = path.read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(matter), body


class TestFiles:
    def test_what_stands_in_one(self, place: Place) -> None:
        place.change("t1", summary="It was agreed to take oak.", importance=0.7)
        report = place.update()
        assert report == MemoryReport(written=["house-t1.md", "house-t2.md"])
        assert set(place.files()) == {"house-t1.md", "house-t2.md"}
        matter, body = parsed(place.path("t1"))
        assert len(matter.pop("topicloom")) == 16
        assert matter == {
            "session": "house",
            "id": "t1",
            "name": "Kitchen",
            "status": "open",
            "first": "2026-03-01T09:00:00+01:00",
            "last": "2026-03-04T09:00:00+01:00",
            "messages": "m1-m4",
            "count": 4,
            "parents": [],
            "children": [],
            "importance": 0.7,
            "keywords": ["oak worktop"],
        }
        assert body == (
            "\n# Kitchen\n\nAll about the kitchen.\n\n## Summary\n\nIt was agreed to take oak.\n"
        )

    def test_a_topic_and_its_parts(self, place: Place) -> None:
        kitchen = place.topic("t1")
        said = place.store.topic_messages(place.session, kitchen)
        part = Topic(id="t4", name="Worktop", brief="Oak.", parent="t1")
        place.session, part = place.store.assign(place.session, part, said)
        place.save(mark_divided(kitchen, ()), part)
        place.update()
        above, _ = parsed(place.path("t1"))
        below, body = parsed(place.path("t4"))
        assert (above["status"], above["children"], above["messages"]) == ("divided", ["t4"], None)
        assert (below["parents"], below["name"]) == (["t1"], "Worktop")
        assert "# Kitchen / Worktop\n" in body

    def test_what_is_as_it_was_is_not_touched(self, place: Place) -> None:
        place.update()
        before = place.files()
        assert place.update() == MemoryReport(unchanged=2)
        assert place.update(force=True).written == []
        assert place.files() == before

    def test_only_what_changed_is_written(self, place: Place) -> None:
        place.update()
        before = place.files()
        place.save(mark_archived(place.topic("t2"), (), "2026-03"))
        assert place.update() == MemoryReport(written=["house-t2.md"], unchanged=1)
        assert place.files()["house-t1.md"] == before["house-t1.md"]
        assert parsed(place.path("t2"))[0]["status"] == "archived"

    def test_merged_topics_have_none(self, place: Place) -> None:
        place.update()
        place.session, _ = merge_topics(
            place.store, place.session, place.topic("t1"), place.topic("t2")
        )
        report = place.update()
        assert (report.written, report.removed) == (["house-t1.md"], ["house-t2.md"])
        assert parsed(place.path("t1"))[0]["messages"] == "m1-m8"

    def test_what_is_purged_is_gone(self, place: Place) -> None:
        place.update()
        place.store.purge(place.store.plan_purge(place.session, [1]))
        assert place.update().removed == ["house-t1.md"]
        assert not any(b"oak" in text for text, _ in place.files().values())

    def test_what_is_left_of_a_purged_topic_comes_back(self, place: Place) -> None:
        place.store.purge(place.store.plan_purge(place.session, [1, 3]))
        place.change("t1", brief="Written anew.")
        place.update()
        assert parsed(place.path("t1"))[0]["keywords"] == []

    def test_a_damaged_topic_is_told_and_keeps_its_file(self, place: Place) -> None:
        place.update()
        place.change("t1", summary="More.")
        file = place.out.parent / "sessions/house/transcript.jsonl"
        file.write_bytes(file.read_bytes().replace(b"oak", b"elm"))
        place.storage = FileStorage(place.out.parent / "sessions", fsync=False)
        report = place.update()
        assert "is not what was written" in report.left["house-t1.md"]
        assert b"oak" in place.path("t1").read_bytes()

    def test_a_folder_that_cannot_be_used(self, place: Place) -> None:
        place.out.write_text("a file")
        with pytest.raises(StorageUnavailableError):
            place.update()


class TestWorkOfOthers:
    def test_a_file_that_was_edited(self, place: Place) -> None:
        place.update()
        edited = place.path("t1").read_bytes() + b"\nMy own remark.\n"
        place.path("t1").write_bytes(edited)
        assert place.update().left == {"house-t1.md": "it was edited by hand"}
        place.change("t1", brief="Another brief.")
        assert place.update().left == {"house-t1.md": "it was edited by hand"}
        assert place.path("t1").read_bytes() == edited
        assert place.update(force=True).written == ["house-t1.md"]
        assert b"My own remark" not in place.path("t1").read_bytes()

    @pytest.mark.parametrize(
        "edit",
        [
            lambda text: text.replace(b"importance: null", b"importance: 1"),
            lambda text: text.replace(b"name: ", b"name "),
            lambda text: text.replace(b"\n", b"\r\n"),
            lambda text: text[:-1],
        ],
    )
    def test_any_edit_is_seen(self, place: Place, edit: Callable[[bytes], bytes]) -> None:
        place.update()
        place.path("t1").write_bytes(edited := edit(place.path("t1").read_bytes()))
        assert list(place.update().left) == ["house-t1.md"]
        assert place.path("t1").read_bytes() == edited

    def test_an_edited_file_whose_topic_is_gone(self, place: Place) -> None:
        place.update()
        with place.path("t2").open("ab") as file:
            file.write(b"Mine.")
        place.change("t2", brief="")
        assert "t2 is gone" in place.update().left["house-t2.md"]
        assert place.update(force=True).removed == ["house-t2.md"]

    def test_a_file_of_somebody_else(self, place: Place) -> None:
        place.out.mkdir()
        place.path("t1").write_text("# My kitchen\n")
        (place.out / "notes.md").write_bytes(b"\xff\xfe")
        report = place.update()
        assert report.left == {"house-t1.md": "somebody else put it there"}
        assert place.path("t1").read_text() == "# My kitchen\n"
        assert place.update(force=True).written == ["house-t1.md"]
        assert (place.out / "notes.md").read_bytes() == b"\xff\xfe"

    def test_a_copy_under_another_name_stays(self, place: Place) -> None:
        place.update()
        copy = place.out / "my copy.md"
        copy.write_bytes(place.path("t2").read_bytes())
        place.change("t2", brief="")
        assert place.update().removed == ["house-t2.md"]
        assert copy.exists()

    def test_sessions_that_share_a_folder(self, tmp_path: Path) -> None:
        one, other = Place(tmp_path, "a"), Place(tmp_path, "a-t1")
        one.update()
        other.update()
        before = one.files()
        one.change("t1", brief="")
        assert one.update().removed == ["a-t1.md"]
        assert {n: f for n, f in one.files().items() if n.startswith("a-t1-")} == {
            n: f for n, f in before.items() if n.startswith("a-t1-")
        }

    def test_the_file_of_another_session_is_never_written_over(self, place: Place) -> None:
        """As where a file system takes `House` for `house`."""
        place.update()
        theirs = place.path("t1").read_bytes().replace(b'"house"', b'"House"')
        place.path("t1").write_bytes(theirs)
        report = place.update(force=True)
        assert report.left == {"house-t1.md": "it is the file of t1 of session 'House'"}
        assert place.path("t1").read_bytes() == theirs

    @pytest.mark.parametrize(
        "name", ["../../etc", "/etc/passwd", ".", "茶\ud800", "x" * 400, "a\0b"]
    )
    def test_no_name_leads_out_of_the_folder(self, tmp_path: Path, name: str) -> None:
        place = Place(tmp_path, name)
        report = place.update()
        assert len(report.written) == 2
        assert {make_file_name(name, "t1"), make_file_name(name, "t2")} == set(place.files())
        assert place.update() == MemoryReport(unchanged=2)
        place.change("t1", brief="")
        assert place.update().removed == [make_file_name(name, "t1")]


class TestLive:
    @pytest.mark.slow
    def test_called_after_each_turn(self, tmp_path: Path) -> None:
        world = World(tmp_path / "sessions")
        files = MemoryFiles(tmp_path / "memory", FileStorage(world.folder, fsync=False))
        world.begin(days=8)
        state = world.graph.get_state(CONFIG).values
        assert len(files(state).written) == 4
        assert files(state) == MemoryReport(), "nothing is looked at while nothing changes"
        world.review()
        report = files(world.graph.get_state(CONFIG).values)
        assert len(report.written) == 4
        tea = tmp_path / "memory" / make_file_name("s", world.id_of("茶"))
        assert parsed(tea)[0]["status"] == "archived"
        assert "茶, 6 summed up" in tea.read_text("utf-8")
        tell(world.graph, CONFIG, "山：然后呢？")
        assert files(world.graph.get_state(CONFIG).values) == MemoryReport()

    def test_what_was_left_is_looked_at_again(self, place: Place) -> None:
        files = MemoryFiles(place.out, place.storage)
        files.update(place.session)
        mine = place.path("t1").read_bytes() + b"Mine."
        place.path("t1").write_bytes(mine)
        place.change("t1", brief="Another brief.")
        assert files.update(place.session).left
        assert files.update(place.session).left
        place.path("t1").unlink()
        assert files.update(place.session).written == ["house-t1.md"]
        assert files.update(place.session) == MemoryReport()


@given(name=st.text(), brief=st.text(min_size=1), session=st.text(min_size=1))
def test_any_text_comes_through(name: str, brief: str, session: str) -> None:
    topic = Topic(id="t1", name=name, brief=brief)
    (page,) = build_pages(session, TopicTable({"t1": topic}))
    text = render_page(page, [])
    stamp = read_stamp(text)
    assert stamp is not None
    assert (stamp.session, stamp.topic, stamp.untouched) == (session, "t1", True)
    matter = yaml.safe_load(text.decode("utf-8").split("---\n", 2)[1])
    assert matter["session"] == session
    assert matter["name"] == " ".join(name.split())
    assert text == render_page(page, [])


@given(
    st.binary()
    | st.text().map(lambda t: f'---\ntopicloom: "{"0" * 16}"\n{t}'.encode("utf-8", "replace"))
)
def test_no_file_is_taken_for_ours_by_chance(data: bytes) -> None:
    stamp = read_stamp(data)
    assert stamp is None or not stamp.untouched
