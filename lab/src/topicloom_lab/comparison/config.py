"""The configuration of a comparison, and the sources that it names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from topicloom import ConfigurationError, NotAConversationError
from topicloom_app.recordings.conversations import (
    Conversation,
    Question,
    RecordedMessage,
    load_conversations,
)
from topicloom_app.recordings.replay import find_sample
from topicloom_app.recordings.times import parse_moment
from topicloom_lab.generators import GENERATORS, generate
from topicloom_lab.strategies.catalogue import STRATEGIES, find_strategies

EXAMPLE = Path(str(files("topicloom_lab.comparison").joinpath("example.toml")))
"""The configuration that ships with the package."""


class ModelChoice(BaseModel, frozen=True, extra="forbid"):
    """A chat model that sums up, answers and judges."""

    name: str
    """As `openai:gpt-5-mini`. Keys come from the environment."""
    base_url: str | None = None
    """Of an OpenAI-compatible server."""
    answers: bool = True
    """True if it answers the questions from their contexts."""
    judge: str | None = None
    """Another model that judges the answers; the same one if not given."""


class Comparison(BaseModel, frozen=True, extra="forbid"):
    """Files, strategies and budgets to be compared."""

    files: Annotated[tuple[str, ...], Field(min_length=1)]
    """Files of conversations, `sample`, or generators such as `sniah:tokens=100000,seed=1`."""
    strategies: tuple[str, ...] = tuple(STRATEGIES)
    """Names of strategies, `module:Class` for one's own; all that ship if not given."""
    budgets: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)] = (
        2_000,
        4_000,
        8_000,
    )
    """Tokens of a context."""
    questions: Annotated[int, Field(ge=1)] | None = None
    """Questions of a conversation at most, chosen by the seed; all if not given."""
    seed: int = 0
    """Chooses questions, and resamples them for the intervals of the report."""
    out: Path
    """The folder of results; a relative one starts from the current folder."""
    model: ModelChoice | None = None
    """None for extracts as summaries and an oracle as reader."""
    folder: Path | None = Field(None, exclude=True)
    """The folder that relative paths of files start from."""

    def chosen(self, conversation: Conversation) -> list[Question]:
        """The questions of a conversation that are asked, in its order.

        Questions without evidence are left out: there is nothing to find.
        """
        asked = [q for q in conversation.questions if q.evidence]
        if self.questions is None or len(asked) <= self.questions:
            return asked
        picked = Random(f"{self.seed}:{conversation.id}").sample(range(len(asked)), self.questions)
        return [asked[place] for place in sorted(picked)]


def read_comparison(path: Path, out: Path | None = None) -> Comparison:
    """Read a configuration.

    Args:
        path: The file; relative paths of files in it start from its folder.
        out: Goes before the folder of results that the file names.

    Raises:
        ConfigurationError: If it cannot be read or something in it cannot be used.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(
            "{path} cannot be read: {error}", path=path, error=error
        ) from error
    given = {} if out is None else {"out": out}
    try:
        comparison = Comparison.model_validate({**values, **given, "folder": path.parent})
        find_strategies(comparison.strategies, path.parent)
        return comparison
    except ConfigurationError as error:
        raise ConfigurationError("{path}: {error}", path=path, error=error) from error
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"])) or "it"
        raise ConfigurationError(
            "{path}: {place}: {problem}", path=path, place=place, problem=problem["msg"]
        ) from error


SAMPLE = "sample"
"""The recording that ships with the package."""


def load_source(spec: str, folder: Path | None = None) -> Iterator[Conversation]:
    """The conversations of a source, one at a time.

    Args:
        spec: `sample`, a generator with its options (`sniah:tokens=100000,seed=1`), or a file of
            conversations.
        folder: What a relative path starts from; the current folder if None.

    Raises:
        NotAConversationError: If the file cannot be read or holds something else.
        InputError: If the generator does not take the options.
    """
    if is_generated(spec):
        return generate(spec)
    return load_conversations(_path(spec, folder))


def load_named(specs: Sequence[str], most: int) -> Iterator[Conversation]:
    """The first conversations of each source, named after these: ids are those of a source.

    Raises what `load_source` raises.
    """
    for spec in specs:
        for conversation in islice(load_source(spec), most):
            name = f"{name_of(spec)}/{conversation.id}"
            yield conversation.model_copy(update={"id": name})


def name_of(spec: str) -> str:
    """A source as tables name it: the file's name without folder and ending."""
    if is_generated(spec):
        return spec
    return Path(spec).name.removesuffix(".xz").removesuffix(".jsonl").removesuffix(".json")


def fingerprint(spec: str, folder: Path | None = None) -> str:
    """SHA-256 of a file; of a generator, of its specification, which settles what it makes."""
    try:
        data = spec.encode() if is_generated(spec) else _path(spec, folder).read_bytes()
    except OSError as error:
        raise NotAConversationError(
            "{path} cannot be read: {reason}; `topicloom eval fetch` lists data sets that are"
            " public",
            path=error.filename,
            reason=error.strerror,
        ) from error
    return sha256(data).hexdigest()


def is_generated(spec: str) -> bool:
    """True if a source is a generator's."""
    return spec.partition(":")[0].strip() in GENERATORS


def place_of(question: Question, messages: tuple[RecordedMessage, ...]) -> int:
    """The number of messages before a question.

    Args:
        question: `asked_at` is the id of the message that asks it, or a time; all of the
            conversation was said before a question without.
        messages: The conversation.
    """
    asked = question.asked_at
    for place, message in enumerate(messages):
        if asked is not None and message.id == asked:
            return place
    moment = parse_moment(asked)
    if moment is not None:
        for place, message in enumerate(messages):
            said = parse_moment(message.time)
            if said is not None and said > moment:
                return place
    return len(messages)


def _path(spec: str, folder: Path | None) -> Path:
    if spec == SAMPLE:
        return find_sample()
    path = Path(spec).expanduser()
    return path if folder is None else folder / path
