"""The channels that an application's domain adds to the session graph."""

from __future__ import annotations

from typing import Annotated, Any

from topicloom.domain.plan import TurnPlan
from topicloom.state.channels import SessionInput, SessionState, append_or_reset


def _take_newest(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return new


class DomainState(SessionState, total=False):
    """State of the session graph of an application that has a domain."""

    document: Annotated[dict[str, Any], _take_newest]
    """The application's document, with all edits so far; empty until one comes."""
    plan: dict[str, Any]
    """The plan of the newest turn, a dumped `TurnPlan`."""
    layers: Annotated[list[dict[str, Any]], append_or_reset]
    """Dumped `Layer`s for the note of this turn."""


class DomainInput(SessionInput, total=False):
    """Input of such an application."""

    document: Annotated[dict[str, Any], _take_newest]
    """The document, where it is new or was changed by the application; otherwise it stays."""


def current_plan(state: Any) -> TurnPlan | None:
    """The plan of the newest turn that was planned; None where nothing plans."""
    plan = state.get("plan")
    return None if plan is None else TurnPlan.model_validate(plan)
