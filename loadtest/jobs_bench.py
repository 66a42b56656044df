"""What every part of the benchmark works with: options, server, contestants, findings, and a sign of life."""

import random
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadtest import jobs_process
from loadtest.jobs_contestants import OURS, Contestant, command
from loadtest.jobs_figures import Findings
from loadtest.jobs_process import Driver
from loadtest.jobs_server import Place, Server

#: A driver starts an interpreter and connects; longer than this is a hang.
START_SECONDS = 60

#: Filling and draining end by themselves; longer than this is a hang.
WORK_SECONDS = 900


@dataclass(slots=True)
class Bench:
    """One run. `homes` has the environment of each contestant that is measured, None for ours."""

    options: Namespace
    server: Server
    homes: Mapping[str, Path | None]
    contestants: tuple[Contestant, ...]
    findings: Findings
    folder: Path
    random: random.Random
    step: Callable[[str], object]
    databases: int = 0
    templates: set[str] = field(default_factory=set)

    @asynccontextmanager
    async def driving(
        self, contestant: Contestant, role: str, place: Place, config: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Driver]:
        """Its driver in a role, on a database."""
        words = [*command(contestant, self.homes[contestant.name]), role]
        log = self.folder / f"{contestant.name}-{role}.log"
        full = {"connection": place.connection, "url": place.url, **(config or {})}
        async with jobs_process.driving(f"{contestant.name} ({role})", words, full, log) as driver:
            yield driver

    async def run(
        self, contestant: Contestant, role: str, place: Place, config: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """A role that needs no commands, to its end."""
        async with self.driving(contestant, role, place, config) as driver:
            return await driver.wait_for("done", WORK_SECONDS)

    @asynccontextmanager
    async def fresh(self, contestant: Contestant) -> AsyncIterator[Place]:
        """A new database with the contestant's tables, and nothing in them: a copy of one that was set up once."""
        template = f"template_{contestant.name}"
        if template not in self.templates:
            await self.run(contestant, "set_up", await self.server.make_database(template))
            self.templates.add(template)
        self.databases += 1
        async with self.server.database(f"bench_{self.databases}", template) as place:
            yield place

    @property
    def peers(self) -> tuple[Contestant, ...]:
        return tuple(each for each in self.contestants if each is not OURS)
