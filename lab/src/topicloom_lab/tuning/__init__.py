"""What a turn log says about the settings: figures, replays with other settings, pictures."""
