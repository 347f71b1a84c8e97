# SPDX-License-Identifier: Apache-2.0
"""sluicectl as people run it, with a token of the lab."""
import json as _json

from . import shell


def text(world, who, *words, check=True):
    controller = world.lab.controller
    done = shell.run("env", f"SLUICE_API={controller.base}", f"SLUICE_TOKEN=sluice-{who}",
                     shell.BUILD / "sluicectl", *words, check=check)
    return done.stdout


def json(world, who, *words):
    """The `items` of a list, or the object."""
    answer = _json.loads(text(world, who, *words, "--json"))
    return answer.get("items", answer) if isinstance(answer, dict) else answer
