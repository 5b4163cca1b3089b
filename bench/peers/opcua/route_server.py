"""An OPC UA server with the variables of two machines and the program of their PLC.

    route_server.py PORT FOLDER

FOLDER has the server's certificate and key, server.pem and server.key. User flank
has the password `plc-password`. The server prints "ready" once it listens.

usk25 acknowledges by the id of the request (String), usk26 by a Boolean that
follows the request. What the PLC does with requests is in ns=2;s=plc.mode: answer,
silent, or other, which acknowledges another id. It counts the requests that it
sees in ns=2;s=plc.MACHINE.seen.
"""

import asyncio
import logging
import sys
from datetime import datetime
from pathlib import Path

from asyncua import Server, ua
from asyncua.crypto.permission_rules import User, UserRole

T = ua.VariantType

# The variables that the route writes, and acknowledged.
MACHINES = {
    "usk25": {
        "alarm": T.String, "text": T.String, "wear_um": T.Double, "tool": T.String, "incident": T.String,
        "time": T.DateTime, "request": T.Boolean, "request_id": T.String, "acknowledged": T.String,
    },
    "usk26": {
        "alarm": T.UInt16, "text": T.String, "wear_um": T.Int16, "tool": T.String, "incident": T.String,
        "time": T.String, "request": T.Boolean, "request_id": T.String, "acknowledged": T.Boolean,
    },
}
EMPTY = {T.String: "", T.Double: 0.0, T.Int16: 0, T.UInt16: 0, T.Boolean: False}


class Users:
    def get_user(self, iserver, username=None, password=None, certificate=None):
        if isinstance(password, bytes):
            password = password.decode()
        if username == "flank" and password == "plc-password":
            return User(role=UserRole.User, name=username)
        if username is None:
            return User(role=UserRole.User)
        return None


async def plc(mode, nodes, seen):
    """The program of the PLC: one cycle every 10 ms."""
    last, count = dict.fromkeys(nodes, ""), dict.fromkeys(nodes, 0)
    while True:
        for name, v in nodes.items():
            request, id_, how = await v["request"].read_value(), await v["request_id"].read_value(), await mode.read_value()
            if request and id_ != last[name]:  # and not at its edge: a cycle may miss one
                count[name] += 1
                await seen[name].write_value(count[name], T.Int32)
            last[name] = id_ if request else ""
            if MACHINES[name]["acknowledged"] == T.String:
                if request and how == "answer":
                    await v["acknowledged"].write_value(id_, T.String)
                elif request and how == "other":
                    await v["acknowledged"].write_value("A-AAAAAAAA", T.String)
            else:
                await v["acknowledged"].write_value(bool(request) and how == "answer", T.Boolean)
        await asyncio.sleep(0.01)


async def main(port, folder):
    server = Server(user_manager=Users())
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{port}/flank/")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity, ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt])
    await server.load_certificate(str(folder / "server.pem"))
    await server.load_private_key(str(folder / "server.key"), format="pem")
    await server.set_application_uri("urn:flank:test:plc")
    space = await server.register_namespace("urn:flank:test")
    assert space == 2, space
    root = server.nodes.objects
    mode = await root.add_variable(ua.NodeId("plc.mode", 2), "mode", "answer")
    await mode.set_writable()
    nodes, seen = {}, {}
    for name, kinds in MACHINES.items():
        nodes[name] = {}
        for key, kind in kinds.items():
            value = ua.Variant(EMPTY.get(kind), kind) if kind in EMPTY else ua.Variant(datetime(2000, 1, 1), kind)
            v = await root.add_variable(ua.NodeId(f"{name}.{key}", 2), key, value)
            if key != "acknowledged":
                await v.set_writable()
            nodes[name][key] = v
        seen[name] = await root.add_variable(ua.NodeId(f"plc.{name}.seen", 2), "seen", ua.Variant(0, T.Int32))
    async with server:
        print("ready", flush=True)
        await plc(mode, nodes, seen)


logging.basicConfig(level=logging.ERROR)
asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
