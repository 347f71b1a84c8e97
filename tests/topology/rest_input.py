#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input to a running controller: a 4xx that names the field and why, and nothing has changed."""
import json
import pathlib
import re
import shutil
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lab import manifest, product, rest, shell  # noqa: E402


class Trials:
    def __init__(self, controller):
        self.controller = controller
        self.red, self.admin = controller.client("red"), controller.client("admin")

    def state(self):
        """Everything the project has, to see that a refused request changed nothing."""
        kinds = ("vpcs", "subnets", "endpoints", "security-groups", "route-tables", "elastic-ips")
        return {kind: self.red.list(kind) for kind in kinds}

    def refused(self, name, status, pointer, method, path, body, client=None):
        """The request gets the status, and the answer names the field."""
        before = self.state()
        try:
            (client or self.red).request(method, path, body)
            self.result(name, f"accepted, expected {status}")
            return
        except rest.Problem as problem:
            pointers = [error.get("pointer") for error in problem.document.get("errors", [])]
            wrong = []
            if problem.status != status:
                wrong.append(f"status {problem.status}, expected {status}")
            if pointer and pointer not in pointers:
                wrong.append(f"names {pointers}, expected {pointer}")
            if not problem.document.get("detail") and not problem.document.get("title"):
                wrong.append("says nothing")
            if self.state() != before:
                wrong.append("something has changed")
            self.result(name, "; ".join(wrong), str(problem))

    def raw(self, name, wanted, octets, close=False, seconds=15):
        """Octets as they are; the status line must begin with one of the wanted statuses, the body
        say why, and nothing have changed. None: the connection may also just be closed."""
        answer = b""
        before = self.state()
        try:
            with socket.create_connection(("127.0.0.1", self.controller.port), 5) as sock:
                sock.settimeout(seconds)
                try:
                    for part in octets:
                        sock.sendall(part)
                except OSError:
                    pass  # it may refuse before everything is sent
                if close:
                    sock.shutdown(socket.SHUT_WR)
                try:
                    answer = response(sock)
                except OSError as error:
                    answer = f"({error})".encode()
        except OSError as error:
            answer = f"({error})".encode()
        line = answer.split(b"\r\n")[0].decode(errors="replace")
        good = any(line.startswith(f"HTTP/1.1 {status}") for status in wanted if status)
        good = good or (None in wanted and not line.startswith("HTTP/1.1 2"))
        body = answer.partition(b"\r\n\r\n")[2].decode(errors="replace")
        try:
            why = json.loads(body)["detail"] if body else ""
        except (ValueError, KeyError):
            why = ""
        wrong = [] if good else [line or "closed"]
        if line.startswith("HTTP/1.1 4") and not why:
            wrong.append(f"does not say why: {body!r}")
        if not self.alive():
            wrong.append("the server is down")
        elif self.state() != before:
            wrong.append("something has changed")
        self.result(name, "; ".join(wrong), f"{line}: {why}")

    def alive(self):
        try:
            self.red.list("vpcs")
        except shell.LabError:
            return False
        return self.controller.daemon.running

    @staticmethod
    def result(name, wrong, said=""):
        said = said.replace("\n", " ")[:200]
        print(f"not ok topology/rest/{name}: {wrong}; {said}" if wrong
              else f"ok topology/rest/{name} ({said})", flush=True)


def response(sock):
    """One response, as long as it says that it is."""
    answer = b""
    while part := sock.recv(4096):
        answer += part
        head, end, body = answer.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)^content-length: *(\d+)", head, re.M)
        if end and len(body) >= int(length[1] if length else 0):
            break
    return answer


def request(body, extra=(), length=None, path="/v1/vpcs"):
    head = [f"POST {path} HTTP/1.1", "Host: x", "Authorization: Bearer sluice-red",
            "Content-Type: application/json",
            f"Content-Length: {len(body) if length is None else length}", *extra]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def fields(trials):
    red = trials.red
    vpc = red.create("vpcs", wait=0, name="one", cidrs=["10.0.0.0/16"])
    other = red.create("vpcs", wait=0, name="two", cidrs=["10.0.0.0/16"])
    subnet = red.create("subnets", wait=0, name="a", vpc_id=vpc["id"], cidr="10.0.1.0/24")
    host = trials.admin.create("hosts", wait=0, name="h", vteps=["192.0.2.11"])
    endpoint = red.create("endpoints", wait=0, name="e", subnet_id=subnet["id"], kind="vm",
                          ip="10.0.1.10", host_id=host["id"])
    foreign = red.create("security-groups", wait=0, name="foreign", vpc_id=other["id"])
    base = {"name": "x", "vpc_id": vpc["id"], "cidr": "10.0.9.0/24"}
    point = {"name": "x", "subnet_id": subnet["id"], "kind": "vm",
             "host_id": host["id"]}
    post = lambda name, status, pointer, kind, body, client=None: trials.refused(
        name, status, pointer, "POST", f"/v1/{kind}", body, client)
    post("unknown-field", 422, "/colour", "vpcs", {"cidrs": ["10.0.0.0/16"], "colour": "red"})
    post("wrong-type", 422, "/cidrs", "vpcs", {"cidrs": "10.0.0.0/16"})
    post("missing-field", 422, "/cidrs", "vpcs", {"name": "x"})
    post("not-enforced-field", 422, "/rdma", "vpcs", {"cidrs": ["10.0.0.0/16"],
                                                      "rdma": {"mode": "off"}})
    post("host-bits", 422, "/cidrs/0", "vpcs", {"cidrs": ["10.0.0.1/16"]})
    post("vni-by-a-member", 403, "/vni", "vpcs", {"cidrs": ["10.0.0.0/16"], "vni": 77})
    post("vni-taken", 409, None, "vpcs", {"cidrs": ["10.0.0.0/16"], "vni": vpc["vni"],
                                          "project_id": "red"}, trials.admin)
    post("subnet-overlaps", 409, None, "subnets", {**base, "cidr": "10.0.1.128/25"})
    post("subnet-outside", 422, "/cidr", "subnets", {**base, "cidr": "10.9.0.0/24"})
    post("mtu-too-small", 422, "/mtu", "subnets", {**base, "mtu": 100})
    post("address-outside", 422, "/ip", "endpoints", {**point, "ip": "10.0.2.10"})
    post("address-taken", 409, None, "endpoints", {**point, "ip": "10.0.1.10"})
    post("address-of-the-gateway", 409, None, "endpoints", {**point, "ip": "10.0.1.1"})
    post("group-of-another-vpc", 422, "/security_group_ids/0", "endpoints",
         {**point, "security_group_ids": [foreign["id"]]})
    post("unknown-reference", 404, None, "endpoints",
         {**point, "subnet_id": "00000000-0000-4000-8000-000000000001"})
    rule = {"direction": "ingress", "action": "allow", "family": "ipv4", "protocol": "tcp",
            "port_min": 80, "port_max": 80}
    rules = f"security-groups/{foreign['id']}/rules"
    red.request("POST", f"/v1/{rules}", rule)
    post("duplicate-rule", 409, None, rules, rule)
    post("ports-reversed", 422, None, rules, {**rule, "port_min": 90})
    post("priority-out-of-range", 422, "/priority", rules, {**rule, "priority": 40000})
    own = red.create("security-groups", wait=0, name="own", vpc_id=vpc["id"])
    red.update("endpoints", endpoint["id"], wait=0, security_group_ids=[own["id"]])
    for kind, thing in (("vpcs", vpc), ("subnets", subnet), ("security-groups", own)):
        trials.refused(f"{kind}-in-use", 409, None, "DELETE", f"/v1/{kind}/{thing['id']}", None)
    trials.refused("immutable-field", 422, "/cidr", "PATCH", f"/v1/subnets/{subnet['id']}",
                   {"cidr": "10.0.3.0/24"})
    trials.refused("filter-unknown", 400, None, "GET", "/v1/vpcs?colour=red", None)
    trials.refused("member-makes-a-pool", 403, None, "POST", "/v1/external-pools",
                   {"cidr": "203.0.113.0/24"})


def octets(trials):
    trials.raw("broken-json", [400], [request(b'{"cidrs": [')])
    trials.raw("deeply-nested-json", [400], [request(b"[" * 100_000)])
    trials.raw("invalid-utf8", [400, 422], [request(b'{"name":"\xff\xfe","cidrs":["10.0.0.0/16"]}')])
    trials.raw("not-an-object", [400, 422], [request(b'"text"')])
    trials.raw("body-of-100-megabytes", [413],
               [request(b"", length=100_000_000), *[b"a" * 1_000_000] * 100])
    trials.raw("not-http", [400, None], [b"\x16\x03\x01\x02\x00" + bytes(64)])
    trials.raw("header-of-one-megabyte", [400, 431, None],
               [b"GET /v1/vpcs HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n"])
    trials.raw("half-a-request", [400, 408, None], [request(b"{}")[:40]], close=True)
    slow = [socket.create_connection(("127.0.0.1", trials.controller.port), 5) for _ in range(50)]
    for sock in slow:
        sock.sendall(b"POST /v1/vpcs HTTP/1.1\r\nHost: x\r\nContent-Le")
    begin = time.monotonic()
    up = trials.alive()
    took = time.monotonic() - begin
    slow[0].settimeout(15)
    answer = response(slow[0]).decode(errors="replace")
    line = answer.split("\r\n")[0]
    trials.result("a-slow-client-is-told-so", "" if line.startswith("HTTP/1.1 408")
                  and '"detail"' in answer else answer or "closed without a word",
                  f"{line} after {time.monotonic() - begin:.1f} s")
    trials.result("slow-clients", "" if up and took < 1 else f"up: {up}, {took:.1f} s",
                  f"50 of them; another is answered in {took * 1000:.0f} ms")
    for sock in slow:
        sock.close()


def later(trials):
    for name, method, path, body in (
            ("batch", "POST", "/v1/batch", {"operations": []}), ("watch", "GET", "/v1/watch", None),
            ("quotas", "GET", "/v1/quotas", None),
            ("dry-run", "POST", "/v1/vpcs?dry_run=true", {"cidrs": ["10.0.0.0/16"]})):
        trials.refused(f"{name}-comes-later", 501, None, method, path, body)


def main():
    made = manifest.Manifest("sluice-rest")
    try:
        made.lock()
        made.clear()
        made.folder.mkdir(parents=True)
        controller = product.Controller(made.folder, made)
        controller.daemon.start()
        trials = Trials(controller)
        fields(trials)
        octets(trials)
        later(trials)
    except shell.LabError as error:
        print(f"not ok topology/rest: {error}")
    finally:
        logs = shell.BUILD / "test-logs"
        logs.mkdir(parents=True, exist_ok=True)
        for log in made.folder.glob("*.log"):
            shutil.copy(log, logs / f"rest-{log.name}")
        made.clear()


if __name__ == "__main__":
    main()
