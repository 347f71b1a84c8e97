# SPDX-License-Identifier: Apache-2.0
"""A client on os-ken's codec (written independently of Open vSwitch's), against a switch:
os_ken_client.py PREFIX SOCKET. It speaks with the switch message by message, so it can ask in an order
and with a content that no ready-made tool would."""
import json
import socket
import struct
import sys
import time
import warnings

warnings.simplefilter("ignore")
from os_ken.ofproto import ofproto_parser, ofproto_protocol  # noqa: E402
from os_ken.ofproto import ofproto_v1_3 as of  # noqa: E402
from os_ken.ofproto import ofproto_v1_3_parser as parse  # noqa: E402

from results import case, expect, run  # noqa: E402

OURS = 0x0002534C
ONF = 0x4F4E4600


class Client:
    def __init__(self, path):
        self.protocol = ofproto_protocol.ProtocolDesc(of.OFP_VERSION)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.next_xid = 1
        self.send(parse.OFPHello(self.protocol, elements=[parse.OFPHelloElemVersionBitmap([4])]))
        hello = self.receive()
        expect(isinstance(hello, parse.OFPHello), "the first message is", hello)

    def send(self, message, xid=None):
        self.next_xid += 1
        message.set_xid(xid if xid is not None else self.next_xid)
        message.serialize()
        self.socket.sendall(bytes(message.buf))
        return message.xid

    def raw(self):
        head = self.exactly(8)
        return head + self.exactly(struct.unpack("!H", head[2:4])[0] - 8)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            expect(part, "the switch closed the connection")
            data += part
        return data

    def receive(self):
        while True:
            data = self.raw()
            version, kind, length, xid = struct.unpack("!BBHI", data[:8])
            if kind == of.OFPT_ECHO_REQUEST:
                self.socket.sendall(struct.pack("!BBHI", 4, of.OFPT_ECHO_REPLY, 8, xid))
                continue
            return ofproto_parser.msg(self.protocol, version, kind, length, xid, data)

    def ask(self, message):
        xid = self.send(message)
        answer = self.receive()
        expect(answer.xid == xid, "the answer's transaction id is", answer.xid)
        return answer

    def barrier(self):
        """What came before the barrier's answer."""
        xid = self.send(parse.OFPBarrierRequest(self.protocol))
        before = []
        while True:
            answer = self.receive()
            if isinstance(answer, parse.OFPBarrierReply) and answer.xid == xid:
                return before
            before.append(answer)

    def vni(self, number, command=of.OFPFC_ADD, next_table=2, **keywords):
        p = self.protocol
        actions = [parse.OFPActionSetField(reg0=number)]
        return parse.OFPFlowMod(
            p, table_id=1, command=command, priority=0x8000, out_port=of.OFPP_ANY,
            out_group=of.OFPG_ANY, match=parse.OFPMatch(tunnel_id=number),
            instructions=[parse.OFPInstructionActions(of.OFPIT_APPLY_ACTIONS, actions),
                          parse.OFPInstructionGotoTable(next_table)], **keywords)

    def clear(self):
        self.send(parse.OFPFlowMod(self.protocol, table_id=of.OFPTT_ALL,
                                   command=of.OFPFC_DELETE, out_port=of.OFPP_ANY,
                                   out_group=of.OFPG_ANY))
        expect(self.barrier() == [], "clearing")

    def flows(self, table=1):
        answer = self.ask(parse.OFPFlowStatsRequest(self.protocol, table_id=table,
                                                    out_port=of.OFPP_ANY, out_group=of.OFPG_ANY))
        expect(isinstance(answer, parse.OFPFlowStatsReply), answer)
        return answer.body

    def bundle(self, number, what, flags=3):
        message = parse.ONFBundleCtrlMsg(self.protocol, number, what, flags, [])
        return self.send(message)

    def bundled(self, number, message, flags=3):
        """By hand, so that the flags can be wrong."""
        self.next_xid += 1
        message.set_xid(self.next_xid)
        message.serialize()
        inner = bytes(message.buf)
        self.socket.sendall(struct.pack("!BBHIIIIHH", 4, of.OFPT_EXPERIMENTER, 24 + len(inner),
                                        self.next_xid, ONF, 2301, number, 0, flags) + inner)
        return self.next_xid


def is_error(message, kind, code):
    return (isinstance(message, parse.OFPErrorMsg)
            and (message.type, message.code) == (kind, code))


def experimenter_error(message):
    """The experimenter's error type, of an error that is an experimenter's."""
    if getattr(message, "type", None) != of.OFPET_EXPERIMENTER:
        return None
    return message.exp_type


@case
def features_and_configuration(client):
    features = client.ask(parse.OFPFeaturesRequest(client.protocol))
    expect(features.n_tables == 17 and features.datapath_id != 0, features)
    client.send(parse.OFPSetConfig(client.protocol, of.OFPC_FRAG_NORMAL, 77))
    config = client.ask(parse.OFPGetConfigRequest(client.protocol))
    expect(config.miss_send_len == 77, config)


@case
def an_entry_comes_back_field_by_field(client):
    client.clear()
    client.send(client.vni(42, cookie=0x1122334455667788))
    expect(client.barrier() == [], "an add")
    flow, = client.flows()
    expect(flow.cookie == 0x1122334455667788 and flow.table_id == 1, flow)
    expect(dict(flow.match.items()) == {"tunnel_id": 42}, flow.match)
    expect(flow.instructions[0].actions[0].key == "reg0"
           and flow.instructions[0].actions[0].value == 42, flow.instructions)
    expect(flow.instructions[1].table_id == 2, flow.instructions)


TABLES = {"port", "vni", "source", "local", "egress_group", "egress_rule", "route", "elastic_ip",
          "nat_gateway", "public_address", "endpoint", "ingress_group", "ingress_rule", "host"}


@case
def table_features_decode(client):
    answer = client.ask(parse.OFPTableFeaturesStatsRequest(client.protocol, 0, []))
    names = {table.name.rstrip(b"\0").decode() for table in answer.body}
    expect(names == TABLES, names)


@case
def table_features_with_a_body_are_not_permitted(client):
    client.next_xid += 1
    body = struct.pack("!HB5x32sQQII", 64, 1, b"vni", 0, 0, 0, 0)
    client.socket.sendall(struct.pack("!BBHIHHI", 4, of.OFPT_MULTIPART_REQUEST, 16 + len(body),
                                      client.next_xid, of.OFPMP_TABLE_FEATURES, 0, 0) + body)
    expect(is_error(client.receive(), of.OFPET_TABLE_FEATURES_FAILED, 5), "EPERM")


@case
def errors_quote_the_request_and_say_why(client):
    xid = client.send(client.vni(7, next_table=3))
    error = client.receive()
    expect(is_error(error, of.OFPET_BAD_INSTRUCTION, of.OFPBIC_BAD_TABLE_ID), error)
    # OpenFlow 1.3.5 section 7.4.4: at least 64 octets of the request; then a sentence.
    expect(error.xid == xid and error.data[:8] == struct.pack("!BBHI", 4, of.OFPT_FLOW_MOD, 96, xid), error)
    expect(error.data[64:] == b"vni.next: this table does not lead to that one", error.data[64:])


@case
def an_unsupported_multipart_is_bad_multipart(client):
    for kind in (14, 0x1234):
        client.next_xid += 1
        client.socket.sendall(struct.pack("!BBHIHHI", 4, of.OFPT_MULTIPART_REQUEST, 16,
                                          client.next_xid, kind, 0, 0))
        error = client.receive()
        expect(is_error(error, of.OFPET_BAD_REQUEST, of.OFPBRC_BAD_MULTIPART), error)


@case
def unknown_experimenters_are_refused(client):
    error = client.ask(parse.OFPExperimenter(client.protocol, 0xABCDEF, 1, b""))
    expect(is_error(error, of.OFPET_BAD_REQUEST, of.OFPBRC_BAD_EXPERIMENTER), error)
    error = client.ask(parse.OFPExperimenterStatsRequest(client.protocol, 0, OURS, 99, b""))
    expect(is_error(error, of.OFPET_BAD_REQUEST, of.OFPBRC_BAD_EXP_TYPE), error)


@case
def queries_and_digests_travel_as_experimenter_multiparts(client):
    client.send(parse.OFPExperimenterStatsRequest(client.protocol, 0, OURS, 3, b'{"vpc":5}'))
    answer = client.raw()
    expect(answer[16:24] == struct.pack("!II", OURS, 3), answer)
    expect(isinstance(json.loads(answer[24:]), dict), answer)
    client.clear()
    client.send(client.vni(1))
    client.send(parse.OFPExperimenterStatsRequest(client.protocol, 0, OURS, 1, b""))
    answer = client.raw()[24:]
    tables = {answer[i]: struct.unpack("!IQ", answer[i + 4:i + 16])
              for i in range(0, len(answer), 16)}
    # One a table, and the meters.
    expect(len(answer) == (len(TABLES) + 1) * 16 and tables[1][0] == 1 and tables[1][1] != 0, tables)
    expect(tables[16] == (0, 0) and tables[255] == (0, 0), tables)


@case
def a_bundle_is_applied_when_it_is_committed(client):
    client.clear()
    client.bundle(1, of.ONF_BCT_OPEN_REQUEST)
    expect(client.receive().type == of.ONF_BCT_OPEN_REPLY, "open")
    for number in range(1, 11):
        client.bundled(1, client.vni(number))
    expect(client.flows() == [], "nothing before the commit")
    client.bundle(1, of.ONF_BCT_CLOSE_REQUEST)
    expect(client.receive().type == of.ONF_BCT_CLOSE_REPLY, "close")
    client.bundle(1, of.ONF_BCT_COMMIT_REQUEST)
    expect(client.receive().type == of.ONF_BCT_COMMIT_REPLY, "commit")
    expect(len(client.flows()) == 10, "all of it")


@case
def a_bundle_with_one_bad_message_is_not(client):
    client.clear()
    client.bundled(2, client.vni(1))  # opens it
    bad = client.bundled(2, client.vni(2, next_table=5))
    client.bundled(2, client.vni(3))
    commit = client.bundle(2, of.ONF_BCT_COMMIT_REQUEST)
    error = client.receive()
    expect(error.xid == bad and is_error(error, of.OFPET_BAD_INSTRUCTION,
                                         of.OFPBIC_BAD_TABLE_ID), error)
    error = client.receive()
    expect(error.xid == commit and experimenter_error(error) == 2313, error)
    expect(client.flows() == [], "nothing of it")


@case
def bundles_refuse_what_their_state_does_not_allow(client):
    def answers(error, what, number=3, flags=3):
        client.bundle(number, what, flags)
        got = experimenter_error(client.receive())
        expect(got == error, what, "answered", got, "not", error)

    def accepted(what, number=3, flags=3):
        client.bundle(number, what, flags)
        expect(client.receive().type == what + 1, what)

    answers(2302, of.ONF_BCT_COMMIT_REQUEST)
    answers(2302, of.ONF_BCT_CLOSE_REQUEST)
    answers(2302, of.ONF_BCT_DISCARD_REQUEST)
    answers(2307, of.ONF_BCT_OPEN_REQUEST, flags=8)
    accepted(of.ONF_BCT_OPEN_REQUEST)
    answers(2303, of.ONF_BCT_OPEN_REQUEST)
    answers(2307, of.ONF_BCT_CLOSE_REQUEST, flags=1)
    client.bundled(3, client.vni(1), flags=0)
    expect(experimenter_error(client.receive()) == 2307, "an add with other flags")
    accepted(of.ONF_BCT_CLOSE_REQUEST)
    answers(2304, of.ONF_BCT_CLOSE_REQUEST)
    client.bundled(3, client.vni(1))
    expect(experimenter_error(client.receive()) == 2304, "an add to a closed one")
    answers(2313, of.ONF_BCT_COMMIT_REQUEST)
    answers(2302, of.ONF_BCT_DISCARD_REQUEST)
    client.bundled(4, parse.OFPBarrierRequest(client.protocol))
    expect(experimenter_error(client.receive()) == 2310, "a barrier in a bundle")
    answers(2306, 9, number=4)
    for number in range(100, 116):
        accepted(of.ONF_BCT_OPEN_REQUEST, number=number)
    answers(2305, of.ONF_BCT_OPEN_REQUEST, number=999)
    for number in range(100, 116):
        accepted(of.ONF_BCT_DISCARD_REQUEST, number=number)


@case
def roles_need_a_newer_generation(client):
    p = client.protocol
    newest = time.time_ns()
    answer = client.ask(parse.OFPRoleRequest(p, of.OFPCR_ROLE_MASTER, newest))
    expect((answer.role, answer.generation_id) == (of.OFPCR_ROLE_MASTER, newest), answer)
    error = client.ask(parse.OFPRoleRequest(p, of.OFPCR_ROLE_SLAVE, newest - 1))
    expect(is_error(error, of.OFPET_ROLE_REQUEST_FAILED, of.OFPRRFC_STALE), error)
    client.ask(parse.OFPRoleRequest(p, of.OFPCR_ROLE_SLAVE, newest + 1))
    error = client.ask(client.vni(1))
    expect(is_error(error, of.OFPET_BAD_REQUEST, of.OFPBRC_IS_SLAVE), error)
    expect(isinstance(client.flows(), list), "a secondary may read")
    answer = client.ask(parse.OFPRoleRequest(p, of.OFPCR_ROLE_EQUAL, 0))
    expect(answer.role == of.OFPCR_ROLE_EQUAL, answer)


@case
def a_large_dump_comes_in_segments(client):
    client.clear()
    for number in range(1, 3001):
        client.send(client.vni(number))
    expect(client.barrier() == [], "adds")
    client.send(parse.OFPFlowStatsRequest(client.protocol, table_id=1, out_port=of.OFPP_ANY,
                                          out_group=of.OFPG_ANY))
    segments, entries = 0, 0
    while True:
        answer = client.receive()
        segments += 1
        entries += len(answer.body)
        if not answer.flags & of.OFPMPF_REPLY_MORE:
            break
    client.clear()
    expect(entries == 3000 and segments > 3, entries, segments)
    return f"{segments} segments"


if __name__ == "__main__":
    run(sys.argv[1], Client(sys.argv[2]))
