# SPDX-License-Identifier: Apache-2.0
"""Running programs and waiting, both always with a bound."""
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "sluice"
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", ROOT / "build"))


class LabError(Exception):
    """The lab itself, or a product part in it, cannot go on. The text is for people."""


class Timeout(LabError):
    """A condition did not come true in time."""


def run(*words, timeout=20, check=True, input=None):
    """Runs a program to its end; returns the completed process with text output."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, input=input,
                              stdin=None if input is not None else subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise LabError(f"{words[0]} is not installed; ./setup installs it") from error
    except subprocess.TimeoutExpired as error:
        raise Timeout(f"`{' '.join(words)}` did not end within {timeout} s") from error
    if check and done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise LabError(f"`{' '.join(words)}` ended with status {done.returncode}: {said[-600:]}")
    return done


def wait_until(condition, seconds, what, step=0.02):
    """Polls until `condition()` is true and returns its value; raises Timeout naming `what`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise Timeout(f"{what}: not within {seconds:g} s")
        time.sleep(step)
