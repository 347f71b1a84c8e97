# SPDX-License-Identifier: Apache-2.0
"""TCP as a box in the middle must see it: RFC 9293, with RFC 5961 for what would end a connection.

Ends are 0, whose SYN came first, and 1. Written from the standards and docs/semantics.md: one short
method a kind of segment, no table.
"""
FIN, SYN, RST, ACK = 1, 2, 4, 16
MODULUS = 1 << 32


def after(a, b):
    """a - b as a signed number: how far a lies behind b."""
    distance = (a - b) % MODULUS
    return distance - MODULUS if distance >= MODULUS // 2 else distance


def octets_of(p):
    """Of data in the segment; of one in fragments, what its first has of them."""
    if "more" in p:
        return p["cut"][1] - 20 - len(p.get("options", "")) // 2
    return p.get("length", 0)


def is_syn(p):
    """It asks to open."""
    return p["flags"] & (FIN | SYN | RST | ACK) == SYN


class Tcp:
    """`step`: opening (a SYN), crossed (two SYNs), answered (SYN and SYN-ACK), open, over, reset."""

    def __init__(self):
        self.step = "opening"
        self.closed = set()  # ends that have sent FIN
        self.doubted = False  # a RST that its receiver may or may not have taken
        self.sent = [None, None]  # the end of what each has sent
        self.acked = [None, None]  # what each has acknowledged
        self.scale = [None, None]
        self.unanswered = True  # until a handshake is over, or given up

    def pick_up(self):
        """In its middle: its windows may be the largest that there are."""
        self.step, self.unanswered, self.scale = "open", False, [14, 14]

    def timeout(self):
        """The name of how long it may idle."""
        if self.step == "open" and not self.closed and not self.doubted:
            return "tcp_established"
        return "tcp_time_wait" if self.step in ("over", "reset") else "tcp_transitory"

    # --- judging: pass (noted), ignore (carried, not noted), new (another connection), or a reason

    def segment(self, end, p, checked=False):
        """`checked`: data out of the window are dropped, too."""
        flags = p["flags"] & (FIN | SYN | RST | ACK)
        if flags == SYN:
            verdict = self.syn(end)
        elif flags == SYN | ACK:
            verdict = self.syn_ack(end)
        elif flags == ACK and checked and not self.fits(end, p):
            verdict = "tcp_out_of_window"
        elif flags == ACK:
            verdict = self.ack(end)
        elif flags == FIN | ACK:
            verdict = self.fin(end, p)
        elif flags in (RST, RST | ACK):
            verdict = self.rst(end, p)
        else:
            verdict = "tcp_invalid"
        if verdict == "pass":
            self.note(end, p)
        if self.step in ("open", "over", "reset"):
            self.unanswered = False
        return verdict

    def note(self, end, p):
        length = octets_of(p) + bool(p["flags"] & SYN) + bool(p["flags"] & FIN)
        self.sent[end] = self.later(self.sent[end], (p["seq"] + length) % MODULUS)
        if p["flags"] & ACK:
            self.acked[end] = self.later(self.acked[end], p["ack"])
        if p["flags"] & SYN:
            self.scale[end] = p.get("scale")

    @staticmethod
    def later(before, value):
        return value if before is None or after(value, before) > 0 else before

    def syn(self, end):
        if self.step == "opening":
            if end == 0:  # a retransmission, or another attempt with numbers of its own
                self.sent[0] = self.acked[0] = None
            else:
                self.step = "crossed"
            return "pass"
        return "new" if self.step in ("over", "reset") else "ignore"

    def syn_ack(self, end):
        if self.step in ("opening", "answered") and end == 0:
            return "tcp_invalid"
        if self.step == "opening":
            self.step = "answered"
        return "pass" if self.step in ("answered", "crossed") else "ignore"

    def ack(self, end):
        if self.step == "opening":
            return "pass" if end == 1 else "tcp_invalid"
        if self.step == "crossed" or self.step == "answered" and end == 0 or self.doubted:
            self.doubted = False
            self.step = "open"
        return "ignore" if self.step == "reset" else "pass"

    def fin(self, end, p):
        if self.step == "opening":
            return "tcp_invalid"
        if self.step == "reset":
            return "ignore"
        place = self.place_of_fin(end, p)
        if place == "outside":
            return "tcp_out_of_window"
        if place == "before":
            return "ignore"
        self.closed.add(end)
        self.step = "over" if len(self.closed) == 2 else "open"
        self.doubted = False
        return "pass"

    def expected(self, end):
        """What the receiver of end's segments expects next: nobody has what was not sent."""
        acked, sent = self.acked[1 - end], self.sent[end]
        if acked is not None and sent is not None and after(sent, acked) < 0:
            return sent
        return acked

    def window(self, end):
        """The largest that the receiver of end's segments can offer (RFC 7323 section 2.2)."""
        scaled = None not in self.scale
        return 0xFFFF << (self.scale[1 - end] if scaled else 0)

    def fits(self, end, p):
        """A segment of a live connection that its receiver could take (RFC 9293 section 3.10.7.4), or
        a retransmission; it acknowledges what was sent."""
        if self.step not in ("open", "over", "reset"):
            return True
        sent, expected, window = self.sent[1 - end], self.expected(end), self.window(end)
        if sent is not None and after(sent, p["ack"]) < 0:
            return False
        octets = octets_of(p)
        if not octets or expected is None:
            return True
        return after(p["seq"], expected) < window and after(p["seq"] + octets, expected) >= -window

    def place_of_fin(self, end, p):
        """The segment that the FIN closes fits the receiver's window, or lies before it."""
        expected, window = self.expected(end), self.window(end)
        if expected is None:
            return "fits"
        begin = p["seq"]
        finish = (p["seq"] + octets_of(p) + 1) % MODULUS
        if after(begin, expected) > window:
            return "outside"
        if after(finish, expected) >= 0:
            return "fits" if after(finish, expected) < window + 2 else "outside"
        return "outside" if after(finish, expected) < -window else "before"

    def rst(self, end, p):
        if self.step == "opening":
            if end == 1:  # section 3.10.7.3: it must acknowledge the SYN
                believed = p["flags"] & ACK and p["ack"] == self.sent[0]
            else:  # it gives up, or refuses what an old connection's end has acknowledged
                believed = p["seq"] in (self.sent[0], self.acked[1])
            if not believed:
                return "tcp_out_of_window"
            return self.ends()
        expected = self.expected(end)
        if expected is None:
            return self.ends() if p["seq"] == self.sent[end] and self.sent[end] is not None \
                else "tcp_out_of_window"
        distance = after(p["seq"], expected)
        if distance == 0:
            return self.ends()
        if distance < 0:
            return "tcp_out_of_window"
        if p["seq"] == self.sent[end]:
            if self.step == "open" and not self.closed:
                self.doubted = True
            return "ignore"
        return "ignore" if distance < self.window(end) else "tcp_out_of_window"

    def ends(self):
        self.step, self.doubted = "reset", False
        return "ignore"
