# SPDX-License-Identifier: Apache-2.0
"""Network namespaces: making them, running programs and opening sockets inside them."""
import ctypes
import http.client
import os
import socket
import subprocess
import threading

from . import shell

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def exists(name):
    return os.path.exists(f"/run/netns/{name}")


def add(name):
    shell.run("ip", "netns", "add", name)
    # Addresses are usable at once, and the kernel sends nothing of its own that captures would
    # have to explain away.
    knobs = ["ipv6.conf.all.accept_dad=0", "ipv6.conf.default.accept_dad=0",
             "ipv6.conf.all.accept_ra=0", "ipv6.conf.default.accept_ra=0",
             "ipv6.conf.default.router_solicitations=0",
             # Both multicast listener reports (RFC 3810) at once, not the second up to 1 s later.
             "ipv6.conf.default.mldv2_unsolicited_report_interval=1",
             "ipv4.ping_group_range=0 2147483647"]
    execute(name, "sysctl", "-q", "-w", *(f"net.{knob}" for knob in knobs))
    shell.run("ip", "-n", name, "link", "set", "lo", "up")


def delete(name):
    """Ends what still runs inside and removes the namespace."""
    if not exists(name):
        return
    for pid in shell.run("ip", "netns", "pids", name, check=False).stdout.split():
        try:
            os.kill(int(pid), 9)
        except ProcessLookupError:
            pass
    shell.run("ip", "netns", "delete", name)


def execute(name, *words, **options):
    """Runs a program inside the namespace to its end."""
    return shell.run("ip", "netns", "exec", name, *words, **options)


def popen(name, *words, **options):
    """Starts a program inside the namespace; the process is the program itself."""
    words = [str(word) for word in words]
    return subprocess.Popen(["ip", "netns", "exec", name, *words], **options)


def batch(name, *lines):
    """Several `ip` commands inside the namespace by one process."""
    shell.run("ip", "-n", name, "-batch", "-", input="\n".join(lines) + "\n")


def no_offloads(name, device):
    """Checksums are computed and segments cut by whoever sends, so that captures are exact."""
    for feature in ("tx", "rx", "sg", "tso", "gso", "gro", "rxvlan", "txvlan"):
        # One at a time: a feature that a device lacks must not keep the others on.
        execute(name, "ethtool", "-K", device, feature, "off", check=False)


def within(name, function):
    """Calls the function in a thread inside the namespace. Sockets it opens stay there."""
    outcome = {}

    def body():
        try:
            with open(f"/run/netns/{name}", "rb") as handle:
                if _libc.setns(handle.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), f"setns to {name}")
            outcome["value"] = function()
        except BaseException as error:  # handed to the caller below
            outcome["error"] = error

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def packet_socket(name, device):
    """A raw socket that sends whole frames on the device."""
    def make():
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        opened.bind((device, 0))
        return opened
    return within(name, make)


def http_get(name, host, port, path, timeout=2):
    """(status, body) of a GET from inside the namespace."""
    opened = within(name, lambda: socket.create_connection((host, port), timeout))
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    connection.sock = opened
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
