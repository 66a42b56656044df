"""A registry and a yard: jobs put in, workers that run in a task of the test, and what became of it all."""

import pytest

from reserve.worker import Registry
from tests.cli.conftest import of_database, reserve, start
from tests.worker.yard import Yard

__all__ = ["of_database", "reserve", "start"]


@pytest.fixture
def settings(settings):
    """Workers of the tests poll often, and give up what does not end soon."""
    return settings.model_copy(
        update={
            "work_poll_seconds_max": 0.05,
            "work_cancel_seconds": 0.2,
            "job_due_interval_seconds": 0.05,
            "job_rescue_interval_seconds": 0.05,
        }
    )


@pytest.fixture
def jobs():
    return Registry()


@pytest.fixture
def yard(database, conn, namespace, jobs):
    return Yard(database, conn, namespace, jobs)
