"""Conversations that are made up: from a seed, one at a time, of any length.

for conversation in generate("sniah:needle=uuid,tokens=1000000,seed=1"):
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from pydantic import ValidationError

from topicloom import InputError
from topicloom_app.recordings.conversations import Conversation
from topicloom_lab.generators.hotpotqa import hotpotqa
from topicloom_lab.generators.oolong import oolong
from topicloom_lab.generators.sniah import sniah
from topicloom_lab.generators.spec import options_in

__all__ = ["GENERATORS", "generate"]

GENERATORS: Mapping[str, Callable[..., Iterator[Conversation]]] = MappingProxyType(
    {"sniah": sniah, "oolong": oolong, "hotpotqa": hotpotqa}
)
"""Generators by name; their keyword arguments are the options of a specification."""


def generate(spec: str) -> Iterator[Conversation]:
    """Make the conversations of a specification, one at a time.

    The same specification always makes the same conversations.

    Args:
        spec: Name and options, such as `sniah:needle=number,tokens=1000000,depths=40,seed=1`.

    Raises:
        InputError: If there is no such generator or option, or an option cannot have that value.
        NotAConversationError: If a file that the generator reads holds something else.
    """
    name, options = options_in(spec)
    if name not in GENERATORS:
        raise InputError(
            "no generator {name!r}: there are {known}", name=name, known=", ".join(GENERATORS)
        )
    try:
        return GENERATORS[name](**options)
    except ValidationError as error:
        problem = error.errors()[0]
        option = ".".join(map(str, problem["loc"]))
        raise InputError(
            "{spec!r}: option {option!r}: {problem}",
            spec=spec,
            option=option,
            problem=problem["msg"],
        ) from error
