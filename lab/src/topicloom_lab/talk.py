"""Made-up talk: messages of a given length on themes that come and go, a document and lore."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

from langchain_core.documents import Document as LoreDocument
from langchain_core.messages import AIMessageChunk

from topicloom import ReplyRequest
from topicloom.lab import Document

THEMES = (
    "garden tomatoes watering soil compost seeds harvest",
    "python server deploy docker logs cache database",
    "marathon training knee pace shoes recovery",
    "trip Lisbon tram hotel museum ferry budget",
    "kitchen tiles plumber sink oven cupboard",
    "guitar chords rhythm song practice strings",
    "puppy vet vaccine leash kennel biscuits",
    "mortgage bank interest loan savings pension",
    "novel chapter villain plot editor draft",
    "telescope Jupiter eclipse nebula tripod lens",
    "bread sourdough starter flour crust proofing",
    "wedding guests florist cake speech invitations",
)

FILLING = "the a my your some about with near after before under again maybe still our two".split()


def said(turn: int, characters: int) -> str:
    """A text of that many characters; the theme changes every ten turns and returns."""
    words = THEMES[turn // 10 % len(THEMES)].split()
    draw = random.Random(turn * 1_000 + characters)
    text = f"{turn}:"
    while len(text) < characters:
        text += f" {draw.choice(FILLING)} {draw.choice(words)}"
    return text[:characters]


def document_of(entities: int, events: int) -> Document:
    """A document of entities in ten containers, with open events."""
    bags: Document = {f"bag_{n}": {"_anchor": f"bag_{n}", "items": []} for n in range(10)}
    for number in range(entities):
        item = {"id": f"item_{number}", "name": f"Thing {number}", "count": number, "worn": False}
        bags[f"bag_{number % 10}"]["items"].append(item)
    quests = [
        {"id": f"q_{n}", "status": "open", "objective": f"Find thing {n}"} for n in range(events)
    ]
    return {"health": 85, "location": "低语森林", "inventory": bags, "events": quests}


def lore_of_themes(parts: int) -> list[LoreDocument]:
    """Some documents about each word of each theme."""
    return [
        LoreDocument(f"Part {part} on {word}: {theme}.", metadata={"title": f"{word} {part}"})
        for theme in THEMES
        for word in theme.split()
        for part in range(parts)
    ]


class Echo:
    """A responder that says 300 characters without thinking, and the clock of its conversation."""

    model = "echo"

    def __init__(self) -> None:
        self.turn = 0

    def now(self) -> datetime:
        """A day later whenever the theme changes."""
        return datetime(2026, 1, 1, 9, self.turn % 10, tzinfo=UTC) + timedelta(days=self.turn // 10)

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """The text of the turn."""
        yield AIMessageChunk(content=said(self.turn, 300))

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The text of the turn."""
        for chunk in self.stream(request):
            yield chunk
