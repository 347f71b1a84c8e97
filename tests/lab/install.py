# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/install.md, so that the lab and the page cannot drift apart."""
import functools
import re

from . import netns, shell

PAGE = shell.ROOT / "docs/install.md"


@functools.cache
def block(name):
    """The shell block under the comment `lab: NAME`."""
    found = re.search(rf"<!-- lab: {name} -->\n```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    if not found:
        raise shell.LabError(f"{PAGE} has no block `lab: {name}`")
    return found[1]


def execute(space, name, **variables):
    """Runs the block as it stands in a namespace; every variable of it must be given."""
    missing = set(re.findall(r"\$([A-Z]+)", block(name))) - set(variables)
    if missing:
        raise shell.LabError(f"{PAGE}, block {name}: nothing for {', '.join(sorted(missing))}")
    given = [f"{key}={value}" for key, value in variables.items()]
    return netns.execute(space, "env", *given, "sh", "-euc", block(name))
