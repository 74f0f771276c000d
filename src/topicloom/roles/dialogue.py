"""The base of roles that a chat model plays: it asks again if an answer cannot be read.

Its calls carry LangGraph's tag `nostream`: no token of theirs gets into the user's stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from topicloom.effects import Step, either
from topicloom.errors import UnusableAnswerError
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import A, Answer, Q, RoleName, Usage
from topicloom.roles.caches import with_cache_hints
from topicloom.roles.calls import Stepwise
from topicloom.roles.chat import Chat, sum_usage
from topicloom.roles.markup import extract_answers
from topicloom.state.session import Language
from topicloom.state.stored_message import get_text

T = TypeVar("T")

_PLACEHOLDER = re.compile(r"‹\w[^‹›\n]{0,60}›")
"""What a prompt's examples leave to be filled in: in an answer, it is an example said again."""


def make_config(role: RoleName) -> RunnableConfig:
    """The configuration of inner calls: traced by name, out of the user's stream."""
    return RunnableConfig(tags=[TAG_NOSTREAM], run_name=f"topicloom-{role}")


class SessionRequest(Protocol):
    """Any request of a session."""

    @property
    def session(self) -> str: ...

    @property
    def language(self) -> Language: ...


class ChatRole(Stepwise[Q, A]):
    """Base of roles that a chat model plays; a subclass writes the step."""

    role: ClassVar[RoleName]
    """Its name, for traces."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.model, self.deadline = chat.name, chat.deadline

    def send(
        self, session: str, window: str, prompt: list[BaseMessage]
    ) -> Step[tuple[AIMessage, Usage]]:
        """Within a step: the model's answer to a prompt, and its cost; passes on what the client
        raises."""
        model, config = self._chat.model, make_config(self.role)
        ready = with_cache_hints(prompt, model, session, window)
        answer = yield from either(
            lambda: model.invoke(ready.messages, config, **ready.options),
            lambda: model.ainvoke(ready.messages, config, **ready.options),
        )
        return answer, self._chat.usage(session, window, prompt, answer)

    def ask(
        self,
        request: SessionRequest,
        window: str,
        prompt: list[BaseMessage],
        parse: Callable[[str], T],
        form: str,
    ) -> Step[Answer[T]]:
        """Within a step: ask, and once more for the `form`, such as `<query>`, that was not found.

        Raises `UnusableAnswerError` if the second answer can't be read either.
        """
        answer, usage = yield from self.send(request.session, window, prompt)
        text = get_text(answer)
        try:
            return Answer(_read(text, prompt, parse), usage)
        except UnusableAnswerError as error:
            repair = f"asked again: {error}"
        # Some providers refuse an assistant message without text.
        own: list[BaseMessage] = [AIMessage(text)] if text.strip() else []
        complaint = HumanMessage(get_wording(request.language).complaint.format(form=form))
        answer, again = yield from self.send(request.session, window, [*prompt, *own, complaint])
        value = _read(get_text(answer), prompt, parse)
        return Answer(value, sum_usage(usage, again), (repair,))


def _read(text: str, prompt: Sequence[BaseMessage], parse: Callable[[str], T]) -> T:
    """The parsed answer; raises `UnusableAnswerError` too if it repeats the prompt's example."""
    answer = next(extract_answers(text))
    for placeholder in _PLACEHOLDER.findall(get_text(prompt[0])):
        if placeholder in answer:
            raise UnusableAnswerError(f"the answer repeats {placeholder} of the prompt's example")
    return parse(text)
