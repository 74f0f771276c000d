"""Draws figures, replays with other settings, suggestions and pictures from a turn log."""
