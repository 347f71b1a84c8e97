# SPDX-License-Identifier: Apache-2.0
"""One project's token neither sees nor changes another project's objects, nor names them."""
from lab import rest

TITLE = "projects apart"


def status(call, *words, **fields):
    try:
        call(*words, **fields)
    except rest.Problem as problem:
        return problem.status
    return 200


def trespass(mine, other, owned):
    """What a token gets of another project's objects: [request: answer] that is not 404."""
    wrong, asked = [], 0

    def expect(wanted, what, got):
        nonlocal asked
        asked += 1
        if got != wanted:
            wrong.append(f"{what}: {got}")
    for kind, thing in owned.items():
        listed = any(item["id"] == thing["id"] for item in mine.list(kind))
        expect(False, f"{kind} listed", listed)
        expect(404, f"GET {kind}", status(mine.get, kind, thing["id"]))
        expect(404, f"PATCH {kind}", status(mine.update, kind, thing["id"], wait=0,
                                            description="mine"))
        expect(404, f"DELETE {kind}", status(mine.request, "DELETE", f"/v1/{kind}/{thing['id']}"))
    group, vpc, subnet = owned["security-groups"], owned["vpcs"], owned["subnets"]
    endpoint = owned["endpoints"]
    rule = group["rules"][0]["id"]
    body = {"direction": "ingress", "action": "allow", "family": "ipv4"}
    rules = f"/v1/security-groups/{group['id']}/rules"
    expect(404, "POST rule", status(mine.request, "POST", rules, body))
    expect(404, "DELETE rule", status(mine.request, "DELETE", f"{rules}/{rule}"))
    # Named in references and in queries.
    expect(404, "endpoint in its subnet", status(mine.create, "endpoints", wait=0, name="thief",
                                                 kind="vm", subnet_id=subnet["id"]))
    expect(404, "elastic IP to its endpoint", status(mine.create, "elastic-ips", wait=0,
                                                     endpoint_id=endpoint["id"]))
    expect(404, "group in its VPC", status(mine.create, "security-groups", wait=0, name="thief",
                                           vpc_id=vpc["id"]))
    expect(404, "explain", status(mine.request, "POST", "/v1/explain", {
        "vpc_id": vpc["id"], "source": "10.0.1.10", "destination": "10.0.1.11", "protocol": "tcp",
        "destination_port": 80}))
    expect(404, "flows", status(mine.list, "flows", endpoint_id=endpoint["id"]))
    expect(404, "drops", status(mine.list, "drops", vpc_id=vpc["id"]))
    names = {item.get("object_id") for item in mine.list("audit", limit=1000)}
    expect(False, "audit records of it", bool(names & {thing["id"] for thing in owned.values()}))
    return asked, wrong


def belongings(project, elastic=None):
    return {"vpcs": project.vpc, "subnets": project.subnets["front"],
            "endpoints": project.endpoints["web1"], "security-groups": project.default_group(),
            "route-tables": project.routes, **({"elastic-ips": elastic} if elastic else {})}


def run(check, world):
    red, blue = world.red, world.blue
    owned = {"red": belongings(red, red.elastic_ip()), "blue": belongings(blue)}
    before = {name: {kind: world.admin.get(kind, thing["id"])["version"]
                     for kind, thing in things.items()} for name, things in owned.items()}
    report = []
    for name, mine, other in (("blue", blue, "red"), ("red", red, "blue")):
        asked, wrong = trespass(mine.api, other, owned[other])
        report.append(f"{name}'s token on {other}'s objects, {asked} requests: {wrong or 'refused'}")
        check.fact(f"{name}'s token on {other}'s objects", f"{asked} of {asked} unseen or 404",
                   f"{asked - len(wrong)} of {asked}" + "".join(f", {one}" for one in wrong),
                   not wrong)
    for what, got in (("no token", status(rest.Client(world.lab.controller.base).list, "vpcs")),
                      ("a wrong token", status(rest.Client(world.lab.controller.base, "no").list,
                                               "vpcs"))):
        check.equal(what, 401, got)
    after = {name: {kind: world.admin.get(kind, thing["id"])["version"]
                    for kind, thing in things.items()} for name, things in owned.items()}
    check.fact("versions of all of them afterwards", "unchanged",
               "unchanged" if before == after else f"{before} then {after}", before == after)
    check.note("requests", "\n".join(report) + "\n")
