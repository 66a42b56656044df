"""The documentation says what the code does: every setting, every problem, every command."""

from pathlib import Path

from pydantic_core import PydanticUndefined

from reserve.settings import Settings

ROOT = Path(__file__).parents[1]


def settings_table() -> str:
    """The table that docs/settings.md must hold, one row for each setting in the order of the code."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is PydanticUndefined or field.default is None else f"`{field.default}`"
        rows.append(f"| `RESERVE_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(rows)


def test_every_setting_is_documented_with_its_default():
    assert settings_table() in (ROOT / "docs" / "settings.md").read_text()
