"""What calls of models cost."""

from __future__ import annotations

from topicloom.hosting import price_call

__all__ = ["price_call"]
