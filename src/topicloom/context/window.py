"""The main window: its size, and what its fixed parts cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.tools import BaseTool

from topicloom.context.layout import Layout, MainPrompt
from topicloom.context.segments import SegmentLayout
from topicloom.context.token_count import TokenCounter, ToolLike
from topicloom.prompts.loader import LANGUAGES, Prompts
from topicloom.state.calibration import SAFETY_MARGIN
from topicloom.state.language import Language
from topicloom.state.recall import LayoutName, Note
from topicloom.state.rounds import Round
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage


@dataclass(frozen=True)
class MainWindow:
    """The main model's window: the fixed parts of its prompt, and sizes in tokens."""

    largest: int
    """The whole window, as set."""
    most_recall: int
    """Tokens that one turn's recall may add to it."""
    counter: TokenCounter
    """Counts tokens."""
    order: LayoutName
    """The layout of prompts."""
    tools: tuple[BaseTool, ...]
    search: BaseTool
    """`activate_topic`; bound once there are topics."""
    instructions: str = ""
    prompts: Prompts = field(default_factory=Prompts)
    """Our words on topics and on the application's data."""
    edit: BaseTool | None = None
    """`edit_state`; None where the application has no domain."""
    beginning: SegmentLayout | None = None
    """The layout until the first split; None to show the whole conversation so far."""
    context: Callable[[], int | None] = lambda: None
    """Tokens that the main model's server is known to take by now; None if that is not known."""
    media: Callable[[], bool] = lambda: True
    """True unless it is known by now that it takes no images."""

    @property
    def size(self) -> int:
        """The window, no larger than the main model's server takes."""
        return min(self.largest, self.context() or self.largest)

    @property
    def recall(self) -> int:
        """Tokens that one turn's recall may add; fewer if the window is smaller than set."""
        return self.most_recall * self.size // self.largest

    @property
    def layout(self) -> Layout:
        """Lays prompts out that fit the window."""
        return Layout(self.counter, self.size // 4, self.order, self.media())

    def build_system(self, session: Session, facts: str = "") -> str:
        """The system message: the application's words, ours on its data and on topics, and facts.

        Until the first split it says what the lines of days are, and that all is kept; then also
        how what was said comes back.
        """
        ours = [
            *([self.prompts("domain", session.language)] if self.edit else []),
            self.prompts("days", session.language),
            *([self.prompts("responder", session.language)] if session.topics else []),
        ]
        return "\n\n".join(filter(None, [self.instructions, *ours, facts]))

    def find_beginning(self, session: Session, notes: Sequence[Note]) -> SegmentLayout | None:
        """The layout until the first split; None after it, or if all is shown until then."""
        return None if session.topics or notes else self.beginning

    def build_prompt(
        self,
        session: Session,
        view: Sequence[StoredMessage],
        notes: Sequence[Note],
        fetch: Callable[[int], StoredMessage],
        *,
        facts: str = "",
        loop: Sequence[BaseMessage] = (),
        view_tokens: int | None = None,
        callers_tools: Sequence[ToolLike] = (),
        headings: Mapping[str, str] | None = None,
    ) -> MainPrompt:
        """The prompt of a turn; see `Layout.build_prompt`.

        It fits the window, with a margin, together with the tools.
        """
        system = self.build_system(session, facts)
        size = self.uncalibrate(self.size, session)
        room = max(size - self.count_fixed(session, facts, callers_tools), size // 10)
        beginning = self.find_beginning(session, notes)
        if beginning is None:
            return self.layout.build_prompt(
                system, view, notes, fetch, session.language, loop, view_tokens, room, headings
            )
        head, shown = beginning.build_prompt(system, view, self.size, session.language)
        summaries = self.counter.text(head.removeprefix(system))
        prompt = self.layout.build_prompt(
            head, shown, (), fetch, session.language, loop, room=room - summaries
        )
        said = prompt.sections
        ours = said["system"] - summaries
        sections = {"system": ours, "notes": 0, "summaries": summaries, "tail": said["tail"]}
        return replace(prompt, sections=sections)

    def list_tools(self, session: Session, *, search: bool = True) -> list[BaseTool]:
        """Tools that the main model is offered; topics can be searched once there are any."""
        edit = [self.edit] if self.edit else []
        return [*self.tools, *edit, *([self.search] if search and session.topics else [])]

    def count_tools(
        self, session: Session, callers: Sequence[ToolLike] = (), *, search: bool = True
    ) -> int:
        """Tokens of the tools that `list_tools` gives, and of the caller's own."""
        return self._tool_sizes[bool(search and session.topics)] + self.counter.tools(callers)

    def count_fixed(
        self, session: Session, facts: str = "", callers_tools: Sequence[ToolLike] = ()
    ) -> int:
        system = self._system_sizes[session.language, bool(session.topics)]
        tools = self.count_tools(session, callers_tools)
        return system + tools + session.fixed + self.counter.text(facts)

    @cached_property
    def _system_sizes(self) -> dict[tuple[Language, bool], int]:
        return {
            (language, topics): self.counter.message(SystemMessage(self.build_system(probe)))
            for language in LANGUAGES
            for topics in (False, True)
            for probe in [Session(id="-", language=language, topics=int(topics))]
        }

    @cached_property
    def _tool_sizes(self) -> dict[bool, int]:
        probe = Session(id="-", topics=1)
        return {s: self.counter.tools(self.list_tools(probe, search=s)) for s in (False, True)}

    def measure(self, round_: Round) -> int:
        """Tokens of a round as it was said."""
        return sum(self.counter.message(m.message) for m in round_.messages)

    def estimate_notes(self, session: Session) -> int:
        """Tokens that this turn's recall will add: the average so far, once there is any."""
        return session.note_tokens if session.topics or self.edit else 0

    def calibrate(self, estimated: float, session: Session) -> int:
        """An estimate corrected by the provider's reports, with the safety margin."""
        return round(estimated * session.correction.ratio * SAFETY_MARGIN)

    def uncalibrate(self, tokens: float, session: Session) -> int:
        """The estimate that `calibrate` makes `tokens` of."""
        return round(tokens / (session.correction.ratio * SAFETY_MARGIN))
