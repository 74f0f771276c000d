"""The registry of roles: a line each. Settings, docs, receipts and the choice of models walk it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from typing import Any, cast

from topicloom.errors import ConfigurationError
from topicloom.roles.base import P, RoleName, RoleSpec
from topicloom.roles.spending import Spending
from topicloom.telemetry.report import Telemetry

_MODULES = (
    "topicloom.roles.responder",
    "topicloom.roles.splitter",
    "topicloom.roles.reader",
    "topicloom.roles.router",
    "topicloom.roles.brief",
    "topicloom.roles.rewriter",
    "topicloom.roles.arbiter",
    "topicloom.domain.planner",
    "topicloom.domain.selector",
    "topicloom.review.reviewer",
    "topicloom.review.merger",
    "topicloom.reflection.reflector",
)
"""The module of each role has its name, and its `RoleSpec` under that name in capitals. They are
named, not imported: features build on this package, and a start without models loads none."""

ROLES: Mapping[RoleName, str] = {path.rpartition(".")[2]: path for path in _MODULES}
"""Modules of all roles by name, in the order in which docs list them."""


@cache
def spec_of(name: RoleName) -> RoleSpec[Any]:
    """The description of a role; raises `ConfigurationError` if there is no such role."""
    check_names([name])
    return cast("RoleSpec[Any]", getattr(import_module(ROLES[name]), name.upper()))


def check_names(names: Iterable[RoleName]) -> None:
    """Raise `ConfigurationError` if some roles do not exist, naming them and the known ones."""
    unknown = [repr(name) for name in names if name not in ROLES]
    if unknown:
        raise ConfigurationError(
            "there is no role {unknown}: the roles are {known}",
            unknown=", ".join(unknown),
            known=", ".join(ROLES),
        )


@dataclass(frozen=True, slots=True)
class Roles:
    """The implementations of a session's roles, and the stand-ins for those that fail.

    They are looked up by a role's description: `roles[READER]` is a `Reader`. They are
    replaced likewise: `roles.replace(READER, MyReader())` gives other roles.
    """

    _implementations: Mapping[RoleName, Any] = field(default_factory=dict)
    _stand_ins: Mapping[RoleName, Any] = field(default_factory=dict)
    """Deterministic; they need no network and always answer."""
    spending: Spending | None = None
    """Counts what their models use, and has them rest; None for roles that nobody limits."""
    telemetry: Telemetry = field(default_factory=partial(Telemetry, "off", {}), compare=False)
    """Is told of the work between turns that they do."""

    def __getitem__(self, spec: RoleSpec[P]) -> P:
        """The implementation of a role; raises `ConfigurationError` if there is none."""
        implementation = self.get(spec)
        if implementation is None:
            raise ConfigurationError(
                "no model or stand-in is set for the role {name!r}", name=spec.name
            )
        return implementation

    def get(self, spec: RoleSpec[P]) -> P | None:
        """The implementation of a role; None if there is none."""
        return cast("P | None", self._implementations.get(spec.name))

    def stand_in(self, spec: RoleSpec[P]) -> P | None:
        """The role that answers where the implementation fails; None if none does."""
        return cast("P | None", self._stand_ins.get(spec.name))

    def in_turn(self, spec: RoleSpec[P]) -> tuple[P, ...]:
        """The implementation of a role, then its stand-in, as far as there are any."""
        return tuple(p for p in (self.get(spec), self.stand_in(spec)) if p is not None)

    def by_index(self, spec: RoleSpec[P]) -> bool:
        """True if the implementation of a role uses the local index: no model reads its prompt."""
        return bool(getattr(self.get(spec), "by_index", False))

    def replace(self, spec: RoleSpec[P], player: P | None, *, stand_in: P | None = None) -> Roles:
        """The same roles, with another implementation of one, `player`.

        Its stand-in stays the same if none is given.
        """
        stand_ins = {spec.name: stand_in} if stand_in is not None else {}
        return replace(
            self,
            _implementations={**self._implementations, spec.name: player},
            _stand_ins={**self._stand_ins, **stand_ins},
        )
