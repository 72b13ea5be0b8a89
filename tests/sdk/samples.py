"""The samples of the reference and the quick start: the same files, with real values in place of the placeholders."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs/samples"
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def names(ending):
    """All samples of one language."""
    return sorted(path.name for path in FOLDER.glob(f"*{ending}"))


def placeholders(name):
    return set(PLACEHOLDER.findall((FOLDER / name).read_text()))


def rendered(name, values):
    """The text of a sample; a placeholder without a value is an error."""
    return PLACEHOLDER.sub(lambda found: str(values[found[1]]), (FOLDER / name).read_text())


def command(name, values):
    """How a reader would run it: pasted into a shell, or as a file of Python."""
    text = rendered(name, values)
    if name.endswith(".py"):
        return [sys.executable, "-c", text]
    assert shutil.which("curl"), "the samples need curl"
    # `--fail-with-body` stands in for the reader's eyes: a refusal is no success.
    return ["bash", "-euc", "curl() { command curl --silent --show-error --fail-with-body \"$@\"; }\n" + text]


def run(name, values, timeout=60, folder=None):
    """Runs a sample to its end, in a folder that may take files; what it printed."""
    result = subprocess.run(
        command(name, values),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=folder,
        env={**os.environ, "NO_PROXY": "*", "PYTHONUNBUFFERED": "1"},
    )
    assert result.returncode == 0, f"{name}: exit {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout
