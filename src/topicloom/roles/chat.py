"""A chat model that plays a role: its window, the cost of its calls, and asking once more."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, ClassVar, Protocol, Self, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from topicloom.background import asubmit_daemon
from topicloom.context.prefix import PrefixMeter
from topicloom.context.token_count import TokenCounter
from topicloom.context.tokens import CachedTokenCounter, choose_counter
from topicloom.context.windows import PromptWindow
from topicloom.effects import Step, either
from topicloom.errors import UnusableAnswerError
from topicloom.prompts.loader import Prompts
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import A, Answer, Q, RoleName, Usage
from topicloom.roles.calls import Stepwise
from topicloom.roles.markup import extract_answers
from topicloom.roles.models import (
    blocks_async,
    get_model_name,
    get_usage,
    get_window_size,
    take_retries,
)
from topicloom.roles.prompt_caches import with_cache_hints
from topicloom.roles.servers import Server, find_server, read_refusal
from topicloom.roles.spending import Spending
from topicloom.roles.tracing import make_config
from topicloom.state.language import Language
from topicloom.state.receipt import Call
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import get_text

_WINDOW = 128_000
"""Tokens of the window of a model that nothing is known about."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat model with what is needed to fill its window and to account for it."""

    model: BaseChatModel
    counter: TokenCounter
    meter: PrefixMeter
    """Compares prompts; one for all roles of a process."""
    window: int
    """Tokens of the model's window, as set."""
    deadline: float | None = None
    """Seconds after which a turn goes on without an answer; None for no limit."""
    prompts: Prompts = field(default_factory=Prompts)
    answer: int | None = None
    """Tokens of an answer at most; None for what the model's client has set."""
    server: Server = field(default_factory=Server)
    spending: Spending | None = None
    """Counts its calls, and refuses them where a daily limit is used up."""

    @classmethod
    def of(
        cls,
        model: BaseChatModel,
        meter: PrefixMeter,
        *,
        window: int | None = None,
        deadline: float | None = None,
        prompts: Prompts | None = None,
        answer: int | None = None,
        spending: Spending | None = None,
    ) -> Self:
        """A model with a counter for its tokenizer; its window by its profile if not given."""
        counter = CachedTokenCounter(choose_counter(get_model_name(model)))
        size, prompts = window or get_window_size(model, _WINDOW), prompts or Prompts()
        server = find_server(model)
        return cls(model, counter, meter, size, deadline, prompts, answer, server, spending)

    @property
    def name(self) -> str:
        """The model's name, for receipts."""
        return get_model_name(self.model)

    @property
    def size(self) -> int:
        """Tokens of the window, as far as its server takes them."""
        return min(self.window, self.server.context or self.window)

    @property
    def prompt_window(self) -> PromptWindow:
        """The window as tokens are counted, without room for an answer."""
        return PromptWindow.of(self.size, self.counter, self.prompts)

    def usage(
        self, session: str, window: str, prompt: Sequence[BaseMessage], answer: AIMessage
    ) -> Usage:
        """The cost of a call in a window of a session: as reported, else as counted."""
        repeated = self.meter.measure(session, window, prompt, self.counter.message)
        reported = get_usage(answer)
        if reported is None:
            counted = sum(map(self.counter.message, prompt))
            said = self.counter.text(get_text(answer))
            return Usage(self.name, counted, said, repeated=repeated)
        cached = reported.get("input_token_details", {}).get("cache_read") or 0
        return Usage(
            self.name, reported["input_tokens"], reported["output_tokens"], cached, repeated
        )


def sum_usage(first: Usage, second: Usage) -> Usage:
    """The cost of two calls of one model together."""
    tokens = first.input_tokens + second.input_tokens
    repeated = sum(u.input_tokens * (u.repeated or 0.0) for u in (first, second))
    return Usage(
        first.model,
        tokens,
        first.output_tokens + second.output_tokens,
        first.cached_tokens + second.cached_tokens,
        repeated / tokens if tokens else 0.0,
    )


T = TypeVar("T")
_BACKOFF = 0.5
"""Seconds before a first retry, and the factor by which each further one waits longer is 2."""

_PLACEHOLDER = re.compile(r"‹\w[^‹›\n]{0,60}›|Ombrix|ombrix|欧布里")
"""Placeholders, and names that nobody has, in the examples of prompts. An answer that contains one
repeats the example."""


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
        self._once, self._retries = take_retries(chat.model)
        self._end = math.inf
        self._spent: Usage | None = None
        self._cut = ""

    def begin(self, request: Q) -> Step[Answer[A]]:
        """Come to an answer, by another prompt if the server turns out not to take this one."""
        timed = copy(self)
        timed._end = time.monotonic() + (self.deadline or math.inf)
        while True:
            size = self._chat.size
            try:
                answer = yield from timed.step(request)
                cut = (f"cut off: {timed._cut}",) if timed._cut else ()
                return replace(answer, usage=timed._spent, remarks=answer.remarks + cut)
            except Exception as error:  # clients raise anything
                if not self._chat.server.learn(error, size):
                    vars(error)["usage"] = timed._spent
                    raise

    def send(
        self,
        session: str,
        window: str,
        prompt: list[BaseMessage],
        schema: Mapping[str, Any] | None = None,
    ) -> Step[AIMessage]:
        """Within a step: the model's answer to a prompt; its cost is noted.

        Asks again if the server is overloaded. Raises `TimeoutError` at the deadline, and passes on
        what the client raises. Raises `LimitReachedError` if a daily limit has the role rest.
        """
        spending = self._chat.spending
        if spending:
            spending.check(session, self.role)
        server, model = self._chat.server, self._once
        config = make_config(self.role, session, window)
        tokens = self._chat.answer and min(self._chat.answer, self._chat.size // 4)
        for retry in count():
            ready = with_cache_hints(server.shape(prompt), model, session, window)
            options = ready.options | server.limit(tokens, self._find_rest(), schema)
            try:
                call = partial(model.invoke, ready.messages, config, **options)
                acall = partial(model.ainvoke, ready.messages, config, **options)
                own = partial(asubmit_daemon, call) if blocks_async(model) else acall
                answer = yield from either(call, own)
                break
            except Exception as error:  # noqa: BLE001 - `_find_wait` raises it again
                wait = self._find_wait(error, retry)
            yield from either(partial(time.sleep, wait), partial(asyncio.sleep, wait))
        server.notice_thoughts(answer)
        self._cut = server.find_cut(answer)
        usage = self._chat.usage(session, window, prompt, answer)
        if spending:
            spending.note(session, Call(role=self.role, **asdict(usage)))
        self._spent = sum_usage(self._spent, usage) if self._spent else usage
        return answer

    def _find_rest(self) -> float | None:
        """Seconds until the deadline, None without one; raises `TimeoutError` past it."""
        rest = self._end - time.monotonic()
        if rest <= 0:
            raise TimeoutError
        return rest if rest < math.inf else None

    def _find_wait(self, error: Exception, retry: int) -> float:
        """Seconds to wait before another try; raises the error if there is none, or no time.

        Past the deadline, that is the error: the client may say it in words of its own.
        """
        rest = self._find_rest() or math.inf
        _, asked = read_refusal(error)
        wait = float(asked) if asked.isdecimal() else _BACKOFF * 2**retry
        retryable = retry < self._retries and getattr(error, "is_retryable", False)
        if not retryable or wait >= rest:
            raise error
        return wait

    def ask(
        self,
        request: SessionRequest,
        window: str,
        prompt: list[BaseMessage],
        parse: Callable[[str], T],
        form: str,
        schema: Mapping[str, Any] | None = None,
    ) -> Step[Answer[T]]:
        """Within a step: ask, and once more for the `form`, such as `<query>`, that was not found.

        Some servers take a JSON `schema` of the answer as well, which its parser has to know.
        Raises `UnusableAnswerError` if the second answer can't be read either.
        """
        answer = yield from self.send(request.session, window, prompt, schema)
        text = get_text(answer)
        try:
            return Answer(_read(text, prompt, parse))
        except UnusableAnswerError as error:
            repair = f"asked again: {error}"
        # Some providers refuse an assistant message without text.
        own: list[BaseMessage] = [AIMessage(clip(text))] if text.strip() else []
        complaint = HumanMessage(get_wording(request.language).complaint.format(form=form))
        longer = [*prompt, *own, complaint]
        answer = yield from self.send(request.session, window, longer, schema)
        return Answer(_read(get_text(answer), prompt, parse), remarks=(repair,))


def _read(text: str, prompt: Sequence[BaseMessage], parse: Callable[[str], T]) -> T:
    """The parsed answer; raises `UnusableAnswerError` too if it repeats the prompt's example."""
    answer = next(extract_answers(text))
    for placeholder in _PLACEHOLDER.findall(get_text(prompt[0])):
        if placeholder in answer:
            raise UnusableAnswerError(f"the answer repeats {placeholder} of the prompt's example")
    return parse(text)
