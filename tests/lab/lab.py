# SPDX-License-Identifier: Apache-2.0
"""The whole lab: fabric, product, and the folder in which a run keeps logs and captures."""
import os
import shutil

from . import capture, fabric, manifest, product, shell

DEFAULT_NAME = "sluice"


class Lab:
    """Use as a context manager: what was made is gone afterwards, unless `keep` is set."""

    def __init__(self, name=None, captures=None, workers=(0, 1), mtu=1600):
        self.name = name or os.environ.get("SLUICE_LAB", DEFAULT_NAME)
        self.manifest = manifest.Manifest(self.name)
        self.folder = self.manifest.folder  # sockets and state: short paths, as sockets need
        self.captures = captures or shell.BUILD / ("lab" if self.name == DEFAULT_NAME
                                                   else f"lab-{self.name}")
        self.workers, self.mtu = workers, mtu
        self.keep = False
        self.gateway = self.controller = None
        self._capturing = []

    def __enter__(self):
        self.manifest.lock()
        self.manifest.clear()
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.captures, ignore_errors=True)
        self.captures.mkdir(parents=True)
        try:
            self.fabric = fabric.Fabric(self.name, self.manifest, self.mtu)
            self.fabric.build()
        except BaseException:
            self.manifest.clear()
            raise
        return self

    def __exit__(self, *_):
        for running in self._capturing:
            running.stop()
        if self.folder.exists():
            for log in self.folder.glob("*.log"):
                shutil.copy(log, self.captures)
        if not self.keep:
            self.manifest.clear()
        self.manifest.unlock()

    def start_product(self, compare_seconds=30):
        """Controller, then gateway; both ready, and the gateway known to the controller."""
        self.controller = product.Controller(self.folder, self.manifest, compare_seconds)
        self.gateway = product.Gateway(self.folder, self.fabric, self.manifest,
                                       self.controller.openflow, workers=self.workers,
                                       mtu=self.mtu)
        self.controller.daemon.start()
        self.gateway.daemon.start()
        self.wait_connected()

    def wait_connected(self, seconds=10):
        admin = self.controller.client("admin")

        def up():
            return any(gateway["state"] == "active" for gateway in admin.list("gateways"))
        shell.wait_until(up, seconds, "the gateway active in GET /v1/gateways", step=0.1)

    def capture(self, namespace, device, name, **options):
        started = capture.Capture(namespace, device, self.captures / f"{name}.pcap", **options)
        self._capturing.append(started)
        return started

    def capture_underlay(self, name, **options):
        return self.capture(self.fabric.underlay, "gateway", f"{name}-underlay", **options)

    def capture_uplink(self, name, **options):
        return self.capture(self.fabric.uplink, "gateway", f"{name}-uplink", **options)
