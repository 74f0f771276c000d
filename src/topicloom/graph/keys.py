"""The encryption keys that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topicloom.errors import ConfigurationError
from topicloom.settings import Settings

if TYPE_CHECKING:
    from topicloom.storage.encryption import EncryptionKeys


def load_keys(settings: Settings) -> EncryptionKeys | None:
    """The keys of some settings; None if they name none, and nothing is encrypted.

    Raises:
        ConfigurationError: A key or its file cannot be used, or a package is missing.
    """
    text, file = settings.encryption_key, settings.encryption_key_file
    if text is None and file is None:
        return None
    from topicloom.storage.encryption import EncryptionKeys  # only here: it needs a package

    if text is None and file is not None:
        try:
            text = file.read_text("ascii")
        except (OSError, ValueError) as error:
            raise ConfigurationError(
                "the encryption key cannot be read from {path}: {error}", path=file, error=error
            ) from error
    return EncryptionKeys.of(text or "")
