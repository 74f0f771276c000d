"""The collaborators that the nodes of a session close over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from topicloom.background import DaemonWorker
from topicloom.context.prefix import PrefixMeter
from topicloom.context.window import MainWindow
from topicloom.nodes.user_knowledge import UserKnowledge
from topicloom.nodes.workspace import Workspaces
from topicloom.prompts.loader import Cues
from topicloom.roles.registry import Roles
from topicloom.roles.rooms import Rooms
from topicloom.roles.spending import Spending
from topicloom.roles.waits import Waits
from topicloom.search.embedder import Embedder
from topicloom.settings import Settings
from topicloom.telemetry.report import Telemetry
from topicloom.topics.adsorber import Adsorber


@dataclass(frozen=True, slots=True)
class Deps:
    """The collaborators of a session graph, made once; each node takes them from here."""

    settings: Settings
    roles: Roles
    window: MainWindow
    rooms: Rooms
    """How much fits the prompts of readers and splitters."""
    embedder: Embedder
    workspaces: Workspaces
    """Storage and index of each session of this process."""
    adsorber: Adsorber
    """Finds where topics begin."""
    amnesia: Cues
    """Phrases by which the user says that something was forgotten."""
    meter: PrefixMeter
    user: UserKnowledge
    """What is known of the user of a session."""
    clock: Callable[[], datetime]
    """Now, where the setting `timezone` says; dates what carries no time of its own."""
    waits: Waits
    """What each session of this process has waited for in its turn, and which roles rest."""
    telemetry: Telemetry
    """Tells of turns and reviews, where somebody listens."""
    spending: Spending
    """What the models of this process use of the day's limits."""
    ahead: DaemonWorker = field(default_factory=lambda: DaemonWorker("topicloom-ahead"))
    """Embeds what later turns will ask for, those of one turn after those of another."""
