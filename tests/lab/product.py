# SPDX-License-Identifier: Apache-2.0
"""The product in the lab: configuration files, the controller and the gateway as processes."""
import json
import socket
import urllib.error
import urllib.request

from . import netns, process, rest, shell

TOKENS = {"admin": ("", "admin"), "red": ("red", "member"), "blue": ("blue", "member")}


def _free_port(preferred):
    """The preferred TCP port of the loopback, or any free one."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise shell.LabError("no free TCP port on the loopback")


class Controller:
    def __init__(self, folder, manifest, compare_seconds=30):
        self.folder = folder
        self.port, self.telemetry = _free_port(8080), _free_port(9300)
        self.base = f"http://127.0.0.1:{self.port}"
        self.openflow = f"unix:{folder}/controller.of"
        self.config, self.tokens = folder / "controller.toml", folder / "tokens.toml"
        self.config.write_text(f'''[api]
listen = "127.0.0.1:{self.port}"
tokens = "{self.tokens}"
[openflow]
listen = "{self.openflow}"
compare_seconds = {compare_seconds}
[telemetry]
listen = "127.0.0.1:{self.telemetry}"
[store]
url = "sqlite:{folder}/state.db"
''', encoding="utf-8")
        self.tokens.write_text("".join(
            f'[[token]]\ntoken = "sluice-{name}"\nrole = "{role}"\n'
            + (f'project = "{project}"\n' if project else "") + "\n"
            for name, (project, role) in TOKENS.items()), encoding="utf-8")
        self.tokens.chmod(0o600)
        self.daemon = process.Daemon(
            "sluice-controller", [shell.BUILD / "sluice-controller", "--config", self.config],
            folder / "controller.log", manifest, self._healthy)

    def _healthy(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.telemetry}/health", timeout=1):
            pass
        # Any answer will do, also 401: the API listens.
        try:
            with urllib.request.urlopen(f"{self.base}/v1/openapi.json", timeout=1):
                return True
        except urllib.error.HTTPError:
            return True

    def metrics(self):
        url = f"http://127.0.0.1:{self.telemetry}/metrics"
        with urllib.request.urlopen(url, timeout=2) as answer:
            return parse_metrics(answer.read().decode())

    def client(self, who):
        return rest.Client(self.base, f"sluice-{who}")


class Gateway:
    def __init__(self, folder, fabric, manifest, controllers, name="gw1", workers=(0, 1), mtu=1600,
                 sessions="", driver="net_af_packet"):
        self.name, self.folder, self.space = name, folder, fabric.gateway
        self.listen = f"unix:{folder}/{name}.of"
        self.state_dir = folder / name
        self.config = folder / f"{name}.toml"
        cores = ", ".join(str(core) for core in workers)
        self.config.write_text(f'''name = "{name}"
workers = [{cores}]
vtep = ["{fabric.gateway_vtep}", "{fabric.gateway_vtep6}"]
state_dir = "{self.state_dir}"
[memory]
hugepages = "off"
[sessions]
capacity = 100000
{sessions}
[[port]]
role = "underlay"
device = "{driver}0,iface=u0"
addresses = ["{fabric.gateway_vtep}/24", "{fabric.gateway_vtep6}/64"]
mtu = {mtu}
[[port]]
role = "uplink"
device = "{driver}1,iface=x0"
addresses = ["{fabric.gateway_uplink}/24", "{fabric.gateway_uplink6}/64"]
next_hops = ["{fabric.internet_address}", "{fabric.internet_address6}"]
mtu = {min(mtu, 1500)}
[openflow]
controllers = ["{controllers}"]
listen = "{self.listen}"
[telemetry]
listen = "127.0.0.1:9301"
''', encoding="utf-8")
        self.daemon = process.Daemon(
            "sluiced", [shell.BUILD / "sluiced", "--config", self.config], folder / f"{name}.log",
            manifest, self._healthy, self.space)

    def _healthy(self):
        return netns.http_get(self.space, "127.0.0.1", 9301, "/health")[0] == 200

    def metrics(self):
        return parse_metrics(
            netns.http_get(self.space, "127.0.0.1", 9301, "/metrics")[1].decode())


def parse_metrics(text):
    """{(name, frozenset of label pairs): value} of an OpenMetrics page."""
    found = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        series, value = line.rsplit(" ", 1)
        name, _, labels = series.partition("{")
        pairs = [pair.split("=", 1) for pair in labels.rstrip("}").split(",") if "=" in pair]
        found[name, frozenset((key, json.loads(text)) for key, text in pairs)] = float(value)
    return found


def total(metrics, name, **labels):
    """The sum of all series of that name that have these labels."""
    wanted = set(labels.items())
    return sum(value for (series, pairs), value in metrics.items()
               if series == name and wanted <= pairs)
