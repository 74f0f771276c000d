"""The options and help texts of the commands. The code of a command is imported when it runs.

Annotations are no strings here: Typer would evaluate some hundreds of them before each prompt.
"""
