"""The collaborators that the nodes of a session close over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from topicloom.background import DaemonWorker
from topicloom.context.prefix import PrefixMeter
from topicloom.context.window import MainWindow
from topicloom.context.windows import PromptWindow
from topicloom.nodes.user_knowledge import UserKnowledge
from topicloom.nodes.workspace import Workspaces
from topicloom.prompts.loader import LANGUAGES, Cues
from topicloom.roles.reader import READER
from topicloom.roles.registry import Roles
from topicloom.roles.splitter import SPLITTER, messages_room
from topicloom.roles.waits import Waits
from topicloom.search.embedder import Embedder
from topicloom.settings import Settings
from topicloom.state.language import Language
from topicloom.state.rounds import Round
from topicloom.topics.adsorber import Adsorber


@dataclass(frozen=True, slots=True)
class Deps:
    """The collaborators of a session graph, made once; each node takes them from here."""

    settings: Settings
    roles: Roles
    window: MainWindow
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
    """Now, in the session's time zone; dates what carries no time of its own."""
    waits: Waits
    """What each session of this process has waited for in its turn, and which roles rest."""
    ahead: DaemonWorker = field(default_factory=lambda: DaemonWorker("topicloom-ahead"))
    """Embeds what later turns will ask for, those of one turn after those of another."""

    @property
    def language(self) -> Language | None:
        """The language of all sessions; None if each follows its conversation."""
        return None if self.settings.language == "auto" else self.settings.language

    @property
    def reader_window(self) -> PromptWindow:
        """What topics are read in and measured by, by the main model's counter if by no model."""
        own = getattr(self.roles.get(READER), "prompt_window", None)
        size, window = self.settings.topic_window, self.window
        return own or PromptWindow.of(size, window.counter, window.prompts)

    @property
    def split_room(self) -> tuple[Callable[[Round], int], int]:
        """Measures a round as the splitter is shown it; and the tokens that one call may have.

        A model is given as much as its window takes.
        """
        own: PromptWindow | None = getattr(self.roles.get(SPLITTER), "prompt_window", None)
        if own is None:
            return self.window.measure, self.window.size // 2
        return own.measure, min(messages_room(own, language) for language in LANGUAGES)

    @property
    def topic_tokens(self) -> int:
        """Tokens that a topic's messages may come to; past it it is divided into sub-topics."""
        return round(self.settings.topic_share * self.reader_window.topic_room())
