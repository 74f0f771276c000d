"""Reading specifications of generators: `name:option=value,option=value`."""

from __future__ import annotations

from topicloom.errors import InputError


def options_in(spec: str) -> tuple[str, dict[str, str]]:
    """Name and options of a specification, the values as they are written.

    Raises:
        InputError: If a part of it is no option, or an option comes twice.
    """
    name, _, rest = spec.strip().partition(":")
    options: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = (p.strip() for p in part.partition("="))
        if not (option and equals and value):
            raise InputError(
                f"{spec!r}: {part!r} is no option; wanted: {name}:option=value,option=value"
            )
        if option in options:
            raise InputError(f"{spec!r}: option {option!r} is given twice")
        options[option] = value
    return name.strip(), options
