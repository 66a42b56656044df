"""Folders for embedded servers."""

import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def folder():
    """A folder that the server's user can reach when we are root, which pytest's own temporary folders are not."""
    folder = Path(tempfile.mkdtemp(prefix="reserve-test-")).resolve()
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def data_dir(folder):
    return folder / "data"
