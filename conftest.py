"""No test asserts a time, those of hypothesis included: a busy machine is no defect."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile(
    "untimed", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("untimed")
