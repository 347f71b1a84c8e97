# SPDX-License-Identifier: Apache-2.0
"""Which packets pick up a connection in its middle, for a while after a restart that forgot it."""
import octets
import sessions
import tcp
from policy import ANYBODY, SCTP, TCP


def may_be(gateway, p):
    """By the VPC that sends it, or from outside by the one that it is for."""
    vpc = gateway.policy.vpc_with(p["vni"]) if p["vni"] else gateway.limits.who_has(p["destination"])
    midway = p["protocol"] == SCTP or p["protocol"] == TCP and \
        p["flags"] & (tcp.FIN | tcp.SYN | tcp.RST | tcp.ACK) in (tcp.ACK, tcp.FIN | tcp.ACK)
    return midway and wants(gateway, vpc)


def wants(gateway, vpc):
    seconds = gateway.world["vpcs"].get(vpc, {}).get("mid_stream", 60)
    return gateway.restarted is not None and gateway.now < gateway.restarted + seconds


def both_want(gateway, vnis):
    """Of the VPCs at both ends neither lets the other in."""
    return all(wants(gateway, gateway.policy.vpc_with(vni)) for vni in vnis if vni)


def by_reply(gateway, p):
    """The first packet of a connection that policy admits and whose reply this is; None."""
    if p["protocol"] != TCP:  # of others nobody looks at what follows
        return None
    anyway = gateway.policy.decide(p, (None, 0, None), (ANYBODY, ANYBODY))  # whatever groups say
    if anyway.verdict != "forward" or anyway.nat or anyway.mapping:
        return None
    # Whoever gets it would have opened the connection, to where it seems to come from.
    source, destination, _, source_port, destination_port = sessions.turned(tuple(vars(anyway.leaves).values()))
    first = {**p, "source": source, "destination": destination, "source_port": source_port,
             "destination_port": destination_port, "flags": tcp.SYN, "destination_mac": None}
    for name in ("cut", "more"):
        first.pop(name, None)
    opener = anyway.destination
    if opener is None:
        first |= {"side": "uplink", "vni": 0, "vtep": None}
    else:
        spec = gateway.world["endpoints"][opener]
        first |= {"side": "underlay", "vni": gateway.policy.vni_of(opener), "source_mac": spec["mac"],
                  "vtep": gateway.policy.vteps_of(opener)[0], "subnet_id": spec["subnet_id"]}
    decision = gateway.policy.decide(first)
    leads_back = decision.verdict == "forward" and (
        decision.destination_vni, sessions.turned(tuple(vars(decision.leaves).values()))) == (
        p["vni"], octets.tuple_of(p))
    return first if leads_back else None
