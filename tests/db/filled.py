"""What a lane of work has been filled with, for whoever claims from it."""

from dataclasses import dataclass
from typing import Any

Id = Any


@dataclass
class Filled:
    """Ready rows for each key, in the order of the lane, and rows that are not ready."""

    ready: dict[str, list[Id]]
    unready: list[Id]
