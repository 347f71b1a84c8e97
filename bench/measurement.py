# SPDX-License-Identifier: Apache-2.0
"""What every measured program offers to the comparison."""
import dataclasses
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Interval:
    """What a program did between two readings of its own counters."""
    seconds: float
    received: int
    sent: int
    drops: dict = field(default_factory=dict)  # by the program's own words, zeros left out
    core_share: float = 1.0  # of the time, how long its busiest thread had its core

    @property
    def mpps(self):
        return self.received / self.seconds / 1e6


class Program:
    """One run of one program: started on a device, set up, measured, stopped. Use it in `with`.

    `device` is a DPDK virtual device with its arguments; the program sends every packet back to the
    port it came from. Core 0 is its control core, core 1 the one that is measured.
    """
    process = None
    name = ""      # as in the results
    scenario = ""  # what it does to the packets

    def __init__(self, device, folder, buffers):
        self.device, self.folder, self.buffers = device, folder, buffers

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """Returns when the program forwards."""
        raise NotImplementedError

    def measure(self, seconds):
        """An Interval."""
        before = self.process.thread_seconds()
        interval = self.count(seconds)
        after = self.process.thread_seconds()
        busiest = max(after[thread] - before.get(thread, 0) for thread in after)
        return dataclasses.replace(interval, core_share=min(1.0, busiest / interval.seconds))

    def count(self, seconds):
        """An Interval by the program's own counters."""
        raise NotImplementedError

    def stop(self):
        raise NotImplementedError

    def rules(self):
        """The rules it works by, as its own tool prints them; None if it has none."""
        return None

    def connections(self):
        """How many connections it tracks; None if it tracks none."""
        return None

    def expected(self, flow, sent):
        """What must leave for a packet of this flow: a frames.Expected."""
        raise NotImplementedError


def differences(before, after):
    """Counters that grew, by how much."""
    return {name: after[name] - before.get(name, 0) for name in after if after[name] > before.get(name, 0)}
