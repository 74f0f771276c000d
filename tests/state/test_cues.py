"""Cues: each phrase fires in sentences that people write, and ordinary sentences do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from topicloom.prompts.phrases import cue_list
from topicloom.state.cues import Cues, normalised

AMNESIA = cue_list("amnesia_en", "amnesia_zh")
FILLERS = cue_list("fillers")
