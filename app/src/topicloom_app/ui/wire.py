"""What the inspector's page sends, beside changes (`topicloom_app.changes`)."""

from __future__ import annotations

from pydantic import BaseModel, Field


class NewMessage(BaseModel, frozen=True):
    """A message to answer, or only to record."""

    text: str = Field(max_length=200_000)
    """"" for the reply to a message that still waits for one."""
    answer: bool = True


class Editing(BaseModel, frozen=True):
    """Whether changes are taken from now on."""

    on: bool
