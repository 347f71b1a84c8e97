# SPDX-License-Identifier: Apache-2.0
"""ovs-ofctl, an independent controller, against a switch with two ports:
ofctl.py PREFIX unix:SOCKET NAME."""
import os
import subprocess
import sys
import tempfile
import time

from results import case, expect, run

VNI = "table=1,tun_id={0},cookie={0},actions=set_field:{0}->reg0,goto_table:2"
ROUTE = "table=6,ip,nw_dst=10.{0}.0.0/16,reg7=5,actions=set_field:1->reg10,goto_table:12"
ELASTIC = ("table=8,ip,nw_src=10.0.0.{0},reg0=5,"
           "actions=meter:{1},set_field:198.51.100.{0}->ip_src,goto_table:10")


def ofctl(*arguments, options=()):
    done = subprocess.run(["ovs-ofctl", "-O", "OpenFlow13", *options, *arguments],
                          capture_output=True, text=True, timeout=60, check=False)
    # On a busy machine ovs-ofctl remarks that it had to wait.
    return done.stdout + "".join(line for line in done.stderr.splitlines(keepends=True)
                                 if "|WARN|" not in line)


def flows(target, match=""):
    text = ofctl("--no-stats", "dump-flows", target, *([match] if match else []))
    return [line.strip() for line in text.splitlines() if "actions=" in line]


def clean(target):
    expect(ofctl("del-flows", target) == "", "del-flows")
    expect(ofctl("del-meters", target) == "", "del-meters")


def with_file(lines, *arguments, options=()):
    with tempfile.NamedTemporaryFile("w", suffix=".flows") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        return ofctl(*arguments, file.name, options=options)


@case
def show_names_the_ports(target, _):
    text = ofctl("show", target)
    expect("n_tables:17" in text and " 1(" in text and " 2(" in text, text)
    expect("LIVE" in text and "Mbps now" in text, text)


@case
def table_features_come_from_the_schemas(target, _):
    text = ofctl("dump-table-features", target)
    for name in ("port", "vni", "source", "local", "egress_group", "egress_rule", "route",
                 "elastic_ip", "nat_gateway", "public_address", "endpoint", "ingress_group", "ingress_rule",
                 "host"):
        expect(f'("{name}")' in text, name, "is missing")
    expect("arbitrary mask: ip_dst ipv6_dst" in text, "route matches prefixes")
    expect("instructions: meter apply_actions goto_table" in text or "meter" in text, "meters")


@case
def the_other_dumps_are_answered(target, name):
    for command, part in (("dump-desc", f"DP Description: {name}"), ("dump-ports", "2 ports"),
                          ("dump-tables", "tables 2...16"), ("dump-groups", "GROUP_DESC reply"),
                          ("dump-group-features", "GROUP_FEATURES reply"),
                          ("meter-features", "band_types: drop"), ("dump-meters", "METER_CONFIG"),
                          ("meter-stats", "METER reply"), ("queue-stats", "0 queues"),
                          ("dump-aggregate", "flow_count=2")):
        text = ofctl(command, target)
        expect(part in text, command, "answered", text)
    expect("BAD_PORT" in ofctl("dump-ports", target, "77"), "an unknown port")


@case
def entries_are_added_modified_and_removed(target, _):
    clean(target)
    expect(ofctl("add-flow", target, VNI.format(100)) == "", "add")
    expect(flows(target, "table=1") ==
           ["cookie=0x64, table=1, tun_id=0x64 actions=set_field:0x64->reg0,goto_table:2"],
           flows(target, "table=1"))
    expect(ofctl("add-flow", target, VNI.format(100).replace("->reg0", "->reg0").replace(
        "set_field:100", "set_field:7")) == "", "an add replaces the entry of its key")
    expect("set_field:0x7->reg0" in flows(target, "table=1")[0], flows(target, "table=1"))
    expect(ofctl("mod-flows", target, "table=1,actions=set_field:8->reg0,goto_table:2") == "",
           "modify")
    expect("set_field:0x8->reg0" in flows(target, "table=1")[0], flows(target, "table=1"))
    expect("cookie=0x64" in flows(target, "table=1")[0], "a modify keeps the cookie")
    expect(ofctl("del-flows", target, "table=1,tun_id=101") == "", "removing nothing is no error")
    expect(ofctl("--strict", "del-flows", target, "table=1,tun_id=100") == "", "strict remove")
    expect(flows(target, "table=1") == [], "removed")


@case
def cookie_masks_choose_entries(target, _):
    clean(target)
    for number in (0x10, 0x11, 0x20):
        ofctl("add-flow", target, VNI.format(number))
    expect(len(flows(target, "table=1,cookie=0x10/0xf0")) == 2, "dump by cookie")
    ofctl("del-flows", target, "table=1,cookie=0x10/0xf0")
    expect(len(flows(target, "table=1")) == 1, "remove by cookie")


@case
def every_family_and_field_comes_back_as_it_went(target, _):
    clean(target)
    sent = [
        "table=1,tun_id=9,actions=set_field:9->reg0,set_field:0x10003e8->pkt_mark,"
        "set_field:0x130000b4->pkt_mark,goto_table:2",
        "table=2,ip,dl_src=02:00:00:00:00:05,nw_src=10.0.0.5,reg0=5,"
        "actions=set_field:9->reg2,set_field:2->reg9,goto_table:3",
        "table=3,ipv6,ipv6_dst=fd00::1,reg0=5,actions=set_field:02:00:00:00:00:01->eth_src,"
        "set_field:4->reg8,set_field:5->reg7,set_field:0x4005dc->reg11,goto_table:4",
        "table=5,priority=62999,icmp6,icmp_type=128,icmp_code=0,reg4=8,goto_table:6".replace(
            ",goto", ",actions=goto"),
        "table=14,priority=63000,tcp,nw_src=192.0.2.0/24,reg4=8,reg6=0x1bb0050,actions=drop",
        "table=12,ipv6,ipv6_dst=fd00::5,reg1=5,actions=set_field:9->reg3,set_field:1->reg8,"
        "set_field:2->reg9,set_field:02:00:00:00:00:09->eth_dst,set_field:4->reg4,"
        "set_field:8->reg4,goto_table:13",
        "table=16,reg9=2,actions=set_field:0xffffc0000203->xxreg3",
    ]
    for flow in sent:
        text = ofctl("add-flow", target, flow)
        expect(text == "", flow, text)
    got = [f for f in flows(target) if not f.startswith("cookie=0x0, table=0")
           and not f.startswith("in_port")]
    expect(len([f for f in flows(target) if "in_port" not in f]) == len(sent), got)
    expect(any("set_field:0x4->reg4,set_field:0x8->reg4" in f for f in flows(target)),
           "a set keeps its members")
    expect(any("set_field:0x10003e8->pkt_mark,set_field:0x130000b4->pkt_mark" in f
               for f in flows(target)), "so do settings")


@case
def what_a_table_cannot_hold_is_refused_by_name(target, _):
    clean(target)
    for flow, error in (
            ("table=7,ip,actions=drop", "OFPFMFC_BAD_TABLE_ID"),
            ("table=0,in_port=1,actions=drop", "OFPFMFC_EPERM"),
            ("table=1,tun_id=5,reg3=2,actions=set_field:5->reg0,goto_table:2", "OFPBMC_BAD_FIELD"),
            ("table=6,tcp,tcp_dst=80,reg7=5,actions=drop", "OFPBMC_BAD_FIELD"),
            ("table=6,ip,nw_dst=10.0.0.0/255.0.255.0,reg7=5,"
             "actions=set_field:1->reg10,goto_table:12", "OFPBMC_BAD_MASK"),
            ("table=1,tun_id=0x1000000,actions=set_field:5->reg0,goto_table:2",
             "OFPBMC_BAD_VALUE"),
            ("table=6,reg7=5,actions=set_field:1->reg10,goto_table:12", "OFPBMC_BAD_FIELD"),
            ("table=1,tun_id=5,actions=set_field:5->reg0,goto_table:3", "OFPBIC_BAD_TABLE_ID"),
            ("table=1,tun_id=5,actions=set_field:5->reg0", "OFPBIC_UNSUP_INST"),
            ("table=1,tun_id=5,actions=set_field:5->reg1,goto_table:2", "OFPBAC_BAD_SET_TYPE"),
            ("table=1,tun_id=5,actions=set_field:0->reg0,goto_table:2",
             "OFPBAC_BAD_SET_ARGUMENT"),
            # No such setting, not of this table, out of range.
            *((f"table=1,tun_id=5,actions=set_field:5->reg0,set_field:{setting}->pkt_mark,"
               "goto_table:2", "OFPBAC_BAD_SET_ARGUMENT")
              for setting in ("0xf000001", "0x28000001", "0x13000077")),
            ("table=1,tun_id=5,actions=output:1", "OFPBAC_BAD_TYPE"),
            ("table=1,tun_id=5,actions=write_metadata:1", "OFPBIC_UNSUP_INST"),
            ("table=1,priority=7,tun_id=5,actions=set_field:5->reg0,goto_table:2",
             "OFPFMFC_BAD_PRIORITY"),
            ("table=1,idle_timeout=5,tun_id=5,actions=set_field:5->reg0,goto_table:2",
             "OFPFMFC_BAD_TIMEOUT"),
            ("table=1,send_flow_rem,tun_id=5,actions=set_field:5->reg0,goto_table:2",
             "OFPFMFC_BAD_FLAGS"),
            (ELASTIC.format(5, 99), "OFPMMFC_UNKNOWN_METER")):
        text = ofctl("add-flow", target, flow)
        expect(error in text, flow, "answered", text or "nothing")
    expect(len(flows(target)) == 2, "and nothing was added")


@case
def overlaps_are_found_when_asked_for(target, _):
    clean(target)
    rule = "table=14,priority=500,ip,reg4=8,{0}actions=drop"
    expect(ofctl("add-flow", target, rule.format("nw_src=10.0.0.0/8,")) == "", "add")
    text = ofctl("add-flow", target, "check_overlap," + rule.format("nw_src=10.1.0.0/16,"))
    expect("OFPFMFC_OVERLAP" in text, text)
    expect(ofctl("add-flow", target, "check_overlap," + rule.format("nw_src=11.0.0.0/8,")) == "",
           "apart")


@case
def meters_are_added_changed_and_removed_with_their_users(target, _):
    clean(target)
    band = ",kbps,burst,band=type=drop,rate={},burst_size=2000"
    expect(ofctl("add-meter", target, "meter=3" + band.format(20000)) == "", "add")
    expect("METER_EXISTS" in ofctl("add-meter", target, "meter=3" + band.format(1)), "twice")
    expect("UNKNOWN_METER" in ofctl("mod-meter", target, "meter=4" + band.format(1)), "absent")
    expect(ofctl("mod-meter", target, "meter=3" + band.format(30000)) == "", "modify")
    expect("rate=30000 burst_size=2000" in ofctl("dump-meter", target, "meter=3"), "dump")
    for wrong, error in (("meter=5,pktps,band=type=drop,rate=1", "BAD_FLAGS"),
                         ("meter=5,kbps,band=type=dscp_remark,rate=1,prec_level=1", "BAD_BAND"),
                         ("meter=0,kbps,band=type=drop,rate=1", "INVALID_METER")):
        text = ofctl("add-meter", target, wrong)
        expect(error in text or "meter" in text and wrong.startswith("meter=0"), wrong, text)
    expect(ofctl("add-flow", target, ELASTIC.format(5, 3)) == "", "an entry that uses it")
    expect(ofctl("del-meter", target, "meter=3") == "", "remove")
    expect(flows(target, "table=8") == [], "its user went with it")


@case
def a_good_bundle_is_applied(target, _):
    clean(target)
    ofctl("add-flow", target, VNI.format(1))
    text = with_file(["add " + VNI.format(2), "add " + VNI.format(3), "delete table=1,tun_id=1"],
                     "--bundle", "add-flows", target)
    expect(text == "", text)
    expect(len(flows(target, "table=1")) == 2, flows(target, "table=1"))


@case
def of_a_bad_bundle_nothing_is_applied(target, _):
    clean(target)
    for wrong in ("table=1,tun_id=9,actions=set_field:5->reg0,goto_table:3",  # when added
                  ELASTIC.format(9, 99)):                                    # when committed
        text = with_file(["add " + VNI.format(2), "add " + wrong, "add " + VNI.format(3)],
                         "--bundle", "add-flows", target)
        expect("Error OFP" in text, text)
        expect(flows(target, "table=1") == [], flows(target, "table=1"))


@case
def a_bundle_sees_its_own_earlier_messages(target, _):
    clean(target)
    text = with_file(["add " + VNI.format(2), "add " + VNI.format(3),
                      "delete table=1,cookie=2/0xff",
                      "modify table=1,actions=set_field:7->reg0,goto_table:2"],
                     "--bundle", "add-flows", target)
    expect(text == "", text)
    expect(flows(target, "table=1") ==
           ["cookie=0x3, table=1, tun_id=0x3 actions=set_field:0x7->reg0,goto_table:2"],
           flows(target, "table=1"))


@case
def a_hundred_thousand_entries_in_a_bundle(target, _):
    clean(target)
    host = "add table=16,reg9={0},cookie={0},actions=set_field:0xffff{0:08x}->xxreg3"
    start = time.monotonic()
    text = with_file([host.format(number) for number in range(1, 100_001)],
                     "--bundle", "add-flows", target)
    expect(text == "", text)
    added = time.monotonic() - start
    text = ofctl("dump-aggregate", target, "table=16")
    expect("flow_count=100000" in text, text)
    start = time.monotonic()
    expect(len(flows(target, "table=16")) == 100_000, "the dump has them all")
    dumped = time.monotonic() - start
    clean(target)
    return f"{added:.1f} s with ovs-ofctl's parsing, dumped in {dumped:.1f} s"


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    run(*sys.argv[1:])
