"""Faults on purpose: kills, bad disks, bad providers, damage; and a checker of what is left.

`python tests/faults --help` runs the long forms, `tests/faults` the short ones.
"""
