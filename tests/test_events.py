"""What is logged is a closed set, and each member of it is logged somewhere."""

from pathlib import Path

from reserve.events import Event

PACKAGE = Path(__file__).parents[1] / "reserve"


def test_every_event_is_logged_somewhere():
    code = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    assert [event for event in Event if f"Event.{event.name}" not in code] == []
