"""README's snippets do what README says: its `bash` blocks run in order, its `json` block is the last one's output."""

import json
import os
import subprocess
from pathlib import Path

from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser

README = Path(__file__).parents[1] / "README.md"


def test_the_snippets_of_readme_run_as_they_stand(service_url, tmp_path):
    """Variables live on from block to block, as in a terminal."""
    variables = tmp_path / "variables"
    environment = dict(os.environ)
    output: list[str] = []

    def run_shell(example: Example) -> None:
        script = f"set -eo pipefail -o allexport\n{example.parsed}\nenv -0 >'{variables}'"
        script = script.replace("http://127.0.0.1:8080", service_url)
        done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"line {example.line}: {done.stderr or done.stdout}"
        environment.update(pair.split("=", 1) for pair in variables.read_text().split("\0") if pair)
        output.append(done.stdout)

    def compare_json(example: Example) -> None:
        assert json.loads(output[-1]) == json.loads(example.parsed)

    document = Document.parse(str(README), CodeBlockParser("bash", run_shell), CodeBlockParser("json", compare_json))
    evaluated = 0
    for example in document.examples():
        example.evaluate()
        evaluated += 1
    assert evaluated >= 5, "README has lost its snippets"
