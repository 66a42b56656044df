"""The command line and composition root: the only floor that knows all others. Holds no rule of the domain."""

from reserve.cli.program import main

__all__ = ["main"]
