"""What the parts of a split work on together."""

from __future__ import annotations

from dataclasses import dataclass, field

from topicloom.roles.registry import Roles
from topicloom.roles.rooms import Rooms
from topicloom.roles.waits import TurnWaits, Waits
from topicloom.search.embedder import Embedder
from topicloom.state.receipt import Call
from topicloom.topics.adsorber import Adsorber
from topicloom.topics.split_draft import SplitDraft


@dataclass(frozen=True, slots=True)
class SplitWork:
    """A draft of a split, and who is asked about it."""

    draft: SplitDraft
    roles: Roles
    rooms: Rooms
    adsorber: Adsorber
    embedder: Embedder
    """It names topics that no model does."""
    waiting: Waits
    calls: list[Call] = field(default_factory=list)
    """The calls that were made; each part adds its own."""

    @property
    def waits(self) -> TurnWaits:
        return self.waiting.get(self.draft.session.id)
