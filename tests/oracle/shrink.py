# SPDX-License-Identifier: Apache-2.0
"""Makes a recorded run that differs shorter, as long as it still differs in the same way."""
import re
import time

from oracle import Mismatch

PATIENCE = 60  # seconds


def flat(events):
    """The same with every packet an event of its own."""
    for name, what in events:
        if name == "send":
            yield from (("send", [p]) for p in what)
        else:
            yield name, what


def difference(play, events):
    """What differs in a run, or None; a run that the product refuses does not count."""
    try:
        play(events)
    except Mismatch as mismatch:
        text = str(mismatch)
        return None if "refused what the API admits" in text else text
    except (KeyError, IndexError, StopIteration):
        return None  # without the events that are left out it makes no sense
    return None


def kind(text):
    """What is wrong, without the numbers of the one packet."""
    return text and re.sub(r"\d+", "0", text.split("\n")[0])


def shorter(play, events):
    """The first event builds the cloud and stays."""
    ends = time.monotonic() + PATIENCE
    base, rest = events[:1], list(flat(events[1:]))
    wanted = kind(difference(play, base + rest))
    if not wanted:
        return None
    size = len(rest) // 2
    while size and time.monotonic() < ends:
        at, removed = 0, False
        while at < len(rest) and time.monotonic() < ends:
            some = rest[:at] + rest[at + size:]
            if kind(difference(play, base + some)) == wanted:
                rest, removed = some, True
            else:
                at += size
        if not removed or size > len(rest):
            size //= 2
    return base + rest


def report(play, events):
    found = shorter(play, events)
    if found is None:
        print("played again from its events, it does not differ")
        return
    print(f"the shortest sequence found, {len(found) - 1} events after the cloud was built:")
    for name, what in found[1:]:
        print(f"    {name} {what}")
    print(f"and then: {difference(play, found)}")
