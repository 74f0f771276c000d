"""Forms of a note that the laboratory tries."""

from __future__ import annotations

from tables import each_row

from topicloom import StoredMessage, TopicNote, count_budget_tokens
from topicloom_app import RecordedMessage
from topicloom_lab.note_layouts import LAYOUTS, NoteSource, find_largest, write_note
from topicloom_lab.strategies.base import stored_of

SAID = (
    ("user", "Rex weighs 12 kilos now, says the vet."),
    ("assistant", "Noted. That is a healthy weight for a beagle of his age."),
    ("user", "Rex weighs 14 kilos now, says the vet."),
    ("user", "Thanks!"),
    ("user", "The boiler broke. " + "It made a noise like a kettle all night long. " * 30),
)


def originals() -> dict[int, StoredMessage]:
    messages = [RecordedMessage(id=f"r{i}", role=r, text=t) for i, (r, t) in enumerate(SAID)]
    return {m.seq: m for m in stored_of(messages)}


def source(*topics: TopicNote) -> NoteSource:
    return NoteSource(topics, originals().__getitem__, "en", "What broke?", "2026-05-03T10:00")


def note(topic: str, *quotes: str) -> TopicNote:
    return TopicNote(topic=topic, name=f"Topic {topic}", score=0.5, quotes=quotes)


EVERYTHING = source(note("t2", "m2", "m5"), note("t1", "m1", "m3", "m4"))


@each_row("name", LAYOUTS)
def test_every_layout_fences_its_quotes_in_a_block(name: str) -> None:
    text = write_note(LAYOUTS[name], EVERYTHING)
    assert text.startswith("<memory>\n")
    assert text.endswith("\n</memory>")
    assert "14 kilos" in text
    assert write_note(LAYOUTS[name], source()) == ""


def test_a_list_by_time_mixes_the_topics() -> None:
    text = write_note(LAYOUTS["time"], EVERYTHING)
    assert "Topic" not in text
    assert "[m1]" not in text
    assert text.index("12 kilos") < text.index("healthy") < text.index("14 kilos")
    newest = write_note(LAYOUTS["time-newest"], EVERYTHING)
    assert newest.index("14 kilos") < newest.index("12 kilos")


def test_what_each_layout_adds_or_leaves_out() -> None:
    assert "[m1] user: Rex" in write_note(LAYOUTS["time-ids"], EVERYTHING)
    assert "the later one holds.\n</memory>" in write_note(LAYOUTS["rule"], EVERYTHING)
    assert "Thanks!" not in write_note(LAYOUTS["no-short"], EVERYTHING)
    marked = write_note(LAYOUTS["marks"], EVERYTHING).splitlines()
    weights = [line for line in marked if "kilos" in line]
    assert [line.endswith("(said again later, differently)") for line in weights] == [True, False]
    assert sum("(said again" in line for line in marked) == 1
    cut = write_note(LAYOUTS["excerpts"], EVERYTHING)
    assert "The boiler broke." in cut
    assert count_budget_tokens(cut) < count_budget_tokens(write_note(LAYOUTS["time"], EVERYTHING))


def test_the_largest_note_that_fits_is_taken() -> None:
    small, large = source(note("t1", "m1")), source(note("t1", "m1", "m3"))
    room = count_budget_tokens(write_note(LAYOUTS["time"], large))
    assert find_largest(LAYOUTS["time"], [small, large], room) == (
        write_note(LAYOUTS["time"], large),
        large,
    )
    found = find_largest(LAYOUTS["time"], [small, large], room - 1)
    assert found is not None
    assert found[1] is small
    assert find_largest(LAYOUTS["time"], [small, large], 2) is None
