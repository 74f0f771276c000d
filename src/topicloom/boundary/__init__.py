"""The semantic boundary adsorber: does a message continue the open topic, or begin another?"""
