"""What has become of a worker's jobs, counted; owns nothing else."""

from dataclasses import dataclass, fields


@dataclass(slots=True)
class Tally:
    """Jobs by what became of them in this worker's hands. `failed`: to be tried again. `lost`: somebody else's now."""

    succeeded: int = 0
    failed: int = 0
    discarded: int = 0
    released: int = 0
    cancelled: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        return self.succeeded + self.failed + self.discarded + self.released + self.cancelled + self.lost

    def as_fields(self) -> dict[str, int]:
        """For a line in the log: what there was."""
        return {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)}
