"""Reads messages of an edge node as a host does: a line each, topic and payload in hex.

pysparkplug decodes them. The rules are those of Sparkplug 3.0.0, by the ids of its chapters 4 and 6.
It prints what it has seen, or the first rule that is broken.
"""

import sys

from pysparkplug import DataType, DBirth, DData, DDeath, MessageType, NBirth, NDeath, Topic

DECODER = {"NBIRTH": NBirth, "NDEATH": NDeath, "DBIRTH": DBirth, "DDATA": DData, "DDEATH": DDeath}


def check(ok, rule):
    if not ok:
        sys.exit(f"message {number}, {topic}: {rule}")


nodes = births = 0
node = seq = last = None  # the NBIRTH and its bdSeq while the node is alive
devices = {}
for number, line in enumerate(sys.stdin, 1):
    topic, raw = line.rstrip("\n").split("\t")
    t = Topic.from_str(topic)
    kind = str(getattr(t.message_type, "value", t.message_type))
    if kind == str(MessageType.NCMD.value):
        continue
    p = DECODER[kind].decode(bytes.fromhex(raw), birth=devices.get(t.device_id))
    if kind == "NDEATH":
        bd = p.bd_seq_metric
        check(bd.name == "bdSeq" and bd.datatype == DataType.INT64, "tck-id-payloads-ndeath-bdseq")
        check(node is not None and bd.value == node, "tck-id-payloads-ndeath-bdseq: the number of the NBIRTH")
        last, node, devices = node, None, {}
        continue
    check(p.timestamp > 0, f"tck-id-payloads-{kind.lower()}-timestamp")
    if kind == "NBIRTH":
        check(p.seq == 0, "tck-id-payloads-nbirth-seq")
        by_name = {m.name: m for m in p.metrics}
        bd, again = by_name["bdSeq"], by_name["Node Control/Rebirth"]
        check(bd.datatype == DataType.INT64 and 0 <= bd.value <= 255, "tck-id-payloads-nbirth-bdseq")
        check(again.datatype == DataType.BOOLEAN and again.value is False, "tck-id-payloads-nbirth-rebirth-req")
        if node is None:  # a new connection
            check(bd.value != last, "tck-id-topics-nbirth-bdseq-increment: the number of the life before")
        else:  # the answer to a request
            check(bd.value == node, "tck-id-payloads-nbirth-bdseq-repeat")
        node, seq, devices, nodes = bd.value, 0, {}, nodes + 1
        continue
    seq = (seq + 1) % 256
    check(node is not None, "tck-id-payloads-dbirth-order: the node is not born")
    check(p.seq == seq, f"tck-id-payloads-{kind.lower()}-seq-inc: {p.seq} in place of {seq}")
    if kind == "DBIRTH":
        check(t.device_id not in devices, "born twice")
        devices[t.device_id], births = p, births + 1
        continue
    check(t.device_id in devices, "the device is not born")
    if kind == "DDEATH":
        del devices[t.device_id]
    else:
        names = {m.name for m in devices[t.device_id].metrics}
        check({m.name for m in p.metrics} <= names, "a metric that the birth does not name")
print(f"{nodes} births of the node, {births} of devices")
