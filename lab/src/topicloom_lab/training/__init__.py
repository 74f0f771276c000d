"""Training the models that ship, from a folder of open data."""
