# SPDX-License-Identifier: Apache-2.0
"""The machines and wires around a gateway: segments, compute hosts, tenants, an internet host.

    red-web1 red-db2 …        blue-web1 …
        │ macvlan (VEPA)          │
    ┌───┴─────────host1───────────┴──┐       ┌──host2──┐
    │ kernel VXLAN device per VPC    │       │         │
    └───────────────┬────────────────┘       └────┬────┘
                 ═══╧═══════ underlay ══╤═════════╧═══
                                     gateway
                          ══════════════╧═ uplink ═╤══
                                                internet

A tenant's interface is a macvlan in VEPA mode (IEEE 802.1Qbg) on the host's VXLAN device: every
frame goes to the gateway's VTEP, also one for a neighbour on the same host, as the contract of
compute hosts has it.
"""
import dataclasses

from . import install, netns


def _wire(space, device, segment, port, mtu, address=None):
    """A veth from a machine's namespace to a port of a segment's bridge."""
    mac = f" address {address}" if address else ""
    netns.batch(
        segment,
        f"link add {port} mtu {mtu} type veth peer name {device} netns {space} mtu {mtu}{mac}",
        f"link set {port} master br0", f"link set {port} up")
    netns.execute(segment, "sysctl", "-qw", f"net.ipv6.conf.{port}.disable_ipv6=1")
    netns.no_offloads(segment, port)
    netns.no_offloads(space, device)
    netns.batch(space, f"link set {device} up")


@dataclasses.dataclass
class Tenant:
    """What an endpoint looks like from inside: one interface `eth0`."""
    name: str
    space: str
    ip: str
    mac: str
    ipv6: str = ""
    host: "Host" = None

    def run(self, *words, **options):
        return netns.execute(self.space, *words, **options)


class Host:
    """A compute host: an underlay address, and one kernel VXLAN device for each VPC."""

    def __init__(self, fabric, number):
        self.fabric = fabric
        self.name = f"host{number}"
        self.space = fabric.space(self.name)
        self.mac = f"02:00:0a:ff:00:{10 + number}"
        self.vtep = f"10.255.0.{10 + number}"
        self.vtep6 = f"fd00:255::{10 + number}"
        self.remote, self.local = fabric.gateway_vtep, self.vtep
        self._devices = set()
        fabric.make_space(self.space)
        _wire(self.space, "u0", fabric.underlay, self.name, fabric.mtu, self.mac)
        netns.batch(self.space, f"addr add {self.vtep}/24 dev u0",
                    f"addr add {self.vtep6}/64 dev u0 nodad")

    def use_ipv6(self):
        """VXLAN devices opened from now on run over the IPv6 underlay."""
        self.remote, self.local = self.fabric.gateway_vtep6, self.vtep6

    def open_vpc(self, vni, mtu=1500):
        """The VPC's VXLAN device as docs/install.md has it: every frame goes to the gateway."""
        device = f"vx{vni}"
        if device in self._devices:
            return device
        install.execute(self.space, "vpc", VNI=vni, MTU=mtu, VTEP=self.local, UNDERLAY="u0",
                        GATEWAY=self.remote)
        netns.no_offloads(self.space, device)
        self._devices.add(device)
        return device

    def attach(self, name, vni, ip, mac, prefix=24, gateway=None, ipv6=None, prefix6=64,
               gateway6=None, mtu=1500):
        """A tenant behind this host, ready to send."""
        space = self.fabric.space(name)
        self.fabric.make_space(space)
        self.open_vpc(vni, max(mtu, 1500))
        install.execute(self.space, "endpoint", VNI=vni, MTU=mtu, ENDPOINT=space, MAC=mac,
                        ADDRESS=f"{ip}/{prefix}", ROUTER=gateway)
        netns.no_offloads(space, "eth0")
        lines = [f"addr add {ipv6}/{prefix6} dev eth0 nodad"] if ipv6 else []
        lines += [f"route add ::/0 via {gateway6} dev eth0"] if gateway6 else []
        netns.batch(space, *lines)
        tenant = Tenant(name, space, ip, mac, ipv6 or "", self)
        self.fabric.tenants[name] = tenant
        return tenant


class Fabric:
    """Both segments and everything on them except the gateway process."""
    gateway_vtep, gateway_vtep6 = "10.255.0.1", "fd00:255::1"
    gateway_uplink, gateway_uplink6 = "203.0.113.1", "2001:db8:113::1"
    internet_address, internet_address6 = "203.0.113.254", "2001:db8:113::254"
    far_address = "192.0.2.80"  # on the internet host, beyond the uplink's own prefix
    pool = "198.51.100.0/24"    # elastic addresses, routed to the gateway
    gateway_mac, uplink_mac = "02:00:0a:ff:00:01", "02:00:cb:00:71:01"

    def __init__(self, lab, manifest, mtu=1600):
        self.lab, self.manifest, self.mtu = lab, manifest, mtu
        self.tenants = {}
        self.underlay, self.uplink = self.space("underlay"), self.space("uplink")
        self.gateway, self.internet = self.space("gateway"), self.space("internet")
        self.rogue = self.space("rogue")

    def space(self, name):
        return f"{self.lab}-{name}"

    def make_space(self, space):
        self.manifest.namespace(space)
        netns.add(space)

    def build(self, hosts=2):
        for segment in (self.underlay, self.uplink):
            self.make_space(segment)
            netns.execute(segment, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
            # A segment is a wire: it passes what is malformed, and does not track connections.
            for family in ("ip", "ip6", "arp"):
                netns.execute(segment, "sysctl", "-qw",
                              f"net.bridge.bridge-nf-call-{family}tables=0", check=False)
            netns.batch(segment, "link add br0 type bridge stp_state 0 mcast_snooping 0",
                        f"link set br0 mtu {self.mtu} up")
        self.make_space(self.gateway)
        # The gateway's ports belong to the gateway process alone: the kernel beside it is mute.
        netns.execute(self.gateway, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1",
                      "net.ipv4.conf.all.arp_ignore=8")
        _wire(self.gateway, "u0", self.underlay, "gateway", self.mtu, self.gateway_mac)
        _wire(self.gateway, "x0", self.uplink, "gateway", self.mtu, self.uplink_mac)

        self.make_space(self.internet)
        _wire(self.internet, "eth0", self.uplink, "internet", self.mtu)
        netns.batch(self.internet, "link set eth0 mtu 1500",
                    f"addr add {self.internet_address}/24 dev eth0",
                    f"addr add {self.internet_address6}/64 dev eth0 nodad",
                    f"addr add {self.far_address}/32 dev lo",
                    f"route add {self.pool} via {self.gateway_uplink}")
        # A machine on the underlay that no one has registered.
        self.make_space(self.rogue)
        _wire(self.rogue, "u0", self.underlay, "rogue", self.mtu, "02:00:0a:ff:00:66")
        netns.batch(self.rogue, "addr add 10.255.0.66/24 dev u0")
        self.hosts = [Host(self, number) for number in range(1, hosts + 1)]
