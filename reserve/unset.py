"""What a change says of a field that it does not touch; owns nothing else."""

from enum import Enum
from typing import Final


class Unset(Enum):
    """Marks what a change leaves as it is, which is not the same as setting it to nothing."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET
