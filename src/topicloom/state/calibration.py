"""Calibration of token estimates by the usage that a provider reports."""

from __future__ import annotations

from dataclasses import dataclass

SAFETY_MARGIN = 1.15
"""Factor on a corrected estimate wherever a limit triggers something: an estimate may be short."""
LOWEST_RATIO, HIGHEST_RATIO = 0.5, 2.0
"""Bounds of one observation and so of the average; beyond them the report counts other things."""
NEWEST_WEIGHT = 0.3
"""Weight of the newest observation, once there are more than three."""


@dataclass(frozen=True, slots=True)
class TokenCalibration:
    """Running ratio of reported to estimated input tokens of one model.

    Both fields are JSON numbers: `TokenCalibration(**asdict(calibration))` is the same calibration.
    """

    ratio: float = 1.0
    """Exponential moving average of reported / estimated, 0.5 to 2.0."""

    observations: int = 0
    """How many reports the ratio has seen."""

    def observe(self, estimated: int, reported: int) -> TokenCalibration:
        """This with one report taken in, as it is if a number is not positive.

        The first replaces the initial 1.0 and the next two average with it, so that the ratio is
        useful from the second request on; after that each weighs `NEWEST_WEIGHT`. `estimated` is
        without correction or margin.
        """
        if estimated <= 0 or reported <= 0:
            return self
        seen = min(max(reported / estimated, LOWEST_RATIO), HIGHEST_RATIO)
        weight = max(NEWEST_WEIGHT, 1 / (self.observations + 1))
        return TokenCalibration(self.ratio + weight * (seen - self.ratio), self.observations + 1)
