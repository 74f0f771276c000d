"""The semantic boundary adsorber: it tells where topics begin."""
