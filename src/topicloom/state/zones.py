"""The user's clock: days are those of the place where the user is, wherever the server stands.

A time is stored by that clock, with its offset from UTC, so its first ten characters are the
user's day, in winter as in summer, whatever zone a later turn is in.
"""

from __future__ import annotations

from datetime import datetime
from difflib import get_close_matches
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator

from topicloom.errors import InputError


def find_zone(name: str) -> ZoneInfo:
    """The time zone of a name in the IANA database, such as `Europe/Paris`.

    Raises:
        InputError: There is none.
    """
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError) as error:
        known = {zone.lower().rpartition("/")[2]: zone for zone in available_timezones()}
        wanted = name.lower().replace(" ", "_").rpartition("/")[2]
        near = [known[found] for found in get_close_matches(wanted, known, 3)]
        raise InputError(
            "{name!r} is no time zone. Name a place, such as {near}",
            name=name,
            near=" or ".join(near or ["Europe/Paris", "Asia/Kolkata"]),
        ) from error


def place_in_zone(moment: datetime, name: str) -> datetime:
    """A moment by the clocks of a zone; as it is, if none is named."""
    return moment.astimezone(find_zone(name)) if name else moment


def _check_zone(name: str) -> str:
    return find_zone(name).key if name else ""


Timezone = Annotated[str, AfterValidator(_check_zone)]
"""The name of a zone that there is, or "" for none."""
