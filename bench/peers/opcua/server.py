"""A server of OPC UA, by asyncua, that plays a machine's control.

    server.py PORT [--certificate FILE --key FILE --trust FILE] [--user NAME --password TEXT]

It listens on 127.0.0.1, with namespace 2, and prints "ready". With a certificate it speaks
Basic256Sha256 with signing and encryption only; without one it speaks in the clear. Each line
of its input is a command, answered with "ok":

    set NODE JSON   the node has a value: a text is a String, a whole number an Int32, another
                    number a Double, a list an array
    bad NODE        the node has the status BadOutOfService and its last value
    drop NODE       the node is deleted

The server ends with its input.
"""

import argparse
import asyncio
import json
import logging
import sys

from asyncua import Server, ua
from asyncua.crypto.permission_rules import User, UserRole
from asyncua.server.user_managers import UserManager


class OneUser(UserManager):
    """Lets one user in, by a password."""

    def __init__(self, name, password):
        self.name, self.password = name, password

    def get_user(self, iserver, username=None, password=None, certificate=None):
        if (username, password) == (self.name, self.password):
            return User(role=UserRole.User)
        return None


def variant(value):
    if isinstance(value, int):
        return ua.Variant(value, ua.VariantType.Int32)
    return ua.Variant(value)


async def obey(server, space, nodes, line):
    word, name, *rest = line.split(maxsplit=2)
    if word == "set" and name not in nodes:
        value = variant(json.loads(rest[0]))
        nodes[name] = await server.nodes.objects.add_variable(ua.NodeId(name, space), name, value)
    elif word == "set":
        await nodes[name].write_value(ua.DataValue(variant(json.loads(rest[0]))))
    elif word == "bad":
        last = await nodes[name].read_data_value()
        await nodes[name].write_value(ua.DataValue(last.Value, StatusCode=ua.StatusCode(ua.StatusCodes.BadOutOfService)))
    elif word == "drop":
        await server.delete_nodes([nodes.pop(name)])
    else:
        raise ValueError(line)


async def main():
    p = argparse.ArgumentParser()
    p.add_argument("port", type=int)
    for name in ("certificate", "key", "trust", "user", "password"):
        p.add_argument("--" + name)
    args = p.parse_args()
    logging.basicConfig(level=logging.WARNING)

    server = Server(user_manager=OneUser(args.user, args.password) if args.user else None)
    await server.init()
    server.set_endpoint(f"opc.tcp://127.0.0.1:{args.port}")
    server.set_security_policy([ua.SecurityPolicyType.NoSecurity])
    if args.certificate:
        server.set_security_policy([ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt])
        await server.load_certificate(args.certificate)
        await server.load_private_key(args.key, format="PEM")
    if args.trust:
        from asyncua.crypto.truststore import TrustStore
        from asyncua.crypto.validator import CertificateValidator, CertificateValidatorOptions

        store = TrustStore([args.trust], [])
        await store.load()
        options = CertificateValidatorOptions.TRUSTED_VALIDATION | CertificateValidatorOptions.PEER_CLIENT
        server.set_certificate_validator(CertificateValidator(options, store))
    if args.user:
        server.set_identity_tokens([ua.UserNameIdentityToken])
    space = await server.register_namespace("urn:flank:peer")
    assert space == 2, space

    nodes = {}
    loop = asyncio.get_running_loop()
    async with server:
        print("ready", flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            await obey(server, space, nodes, line)
            print("ok", flush=True)


asyncio.run(main())
