"""The command line: `nnrs`, or `python -m nnrs`. A module for each command, or for a few that belong together."""
