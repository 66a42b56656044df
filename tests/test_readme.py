"""README's snippets do what README says: `bash` blocks run in order, a `json` block is what the one before has printed.

A `python` block that README says to save is saved.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser

README = Path(__file__).parents[1] / "README.md"


def test_the_snippets_of_readme_run_as_they_stand(service_url, settings, tmp_path):
    """Variables live on from block to block, as in a terminal."""
    variables = tmp_path / "variables"
    # The environment that these tests run in stands where README has made one.
    (tmp_path / ".venv").symlink_to(sys.prefix)
    environment = os.environ | {
        "RESERVE_DATABASE_URL": settings.require_database_url(),
        "RESERVE_NAMESPACE": settings.namespace,
    }
    output: list[str] = []

    def run_shell(example: Example) -> None:
        script = f"set -eo pipefail -o allexport\n{example.parsed}\nenv -0 >'{variables}'"
        script = script.replace("http://127.0.0.1:8080", service_url)
        done = subprocess.run(
            ["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"line {example.line}: {done.stderr or done.stdout}"
        environment.update(pair.split("=", 1) for pair in variables.read_text().split("\0") if pair)
        output.append(done.stdout)

    def compare_json(example: Example) -> None:
        assert json.loads(output[-1]) == json.loads(example.parsed)

    def save(example: Example) -> None:
        before = example.document.text[: example.region.start]
        (name,) = re.findall(r"Save this as `(\w+\.py)`:\s*\Z", before)
        (tmp_path / name).write_text(example.parsed)

    document = Document.parse(
        str(README),
        CodeBlockParser("bash", run_shell),
        CodeBlockParser("json", compare_json),
        CodeBlockParser("python", save),
    )
    evaluated = 0
    for example in document.examples():
        example.evaluate()
        evaluated += 1
    assert evaluated >= 10, "README has lost its snippets"
