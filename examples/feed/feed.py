#!/usr/bin/env python3
"""Send samples to `ingest run` over TCP (schemas/frame.md).

    pip install pyarrow
    python3 examples/feed/feed.py --to 127.0.0.1:9110 --rate 100 < table.csv

The table has a line of channels' names and a line for each sample, separated by
commas. In a program of your own, use class Feed and count what your sensor samples.
"""
import argparse
import collections
import io
import socket
import struct
import sys
import threading
import time
import zlib

import pyarrow as pa


def frame(session, first, time_ns, channels, **more):
    """Return one frame: channels maps names to arrays of one length."""
    facts = dict(session=session, first=first, time_ns=time_ns, **more)
    batch = pa.record_batch(channels).replace_schema_metadata({k: str(v) for k, v in facts.items()})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, batch.schema) as stream:
        stream.write_batch(batch)
    return out.getvalue()


class Refused(Exception):
    """The server refuses a frame."""


class Feed:
    """Sends frames. Keeps frames that are not acknowledged, and sends them again
    on the next connection."""

    def __init__(self, host, port):
        self.address = (host, port)
        self.kept = collections.deque()  # frames that are not acknowledged
        self.lock = threading.Condition()
        self.sock = None
        self.sent = 0  # of kept, on this connection
        self.acknowledged = 0  # of this connection
        self.refused = None

    def send(self, data):
        """Send a frame. Wait while no server takes it."""
        with self.lock:
            self.kept.append(data)
        self._flush(patient=True)

    def close(self, patience=10):
        """Wait until all frames are acknowledged, or none was for so many seconds:
        the last samples of a session are in no window. Return how many are not."""
        left, since = None, time.monotonic()
        while time.monotonic() - since < patience:
            self._flush(patient=False)
            with self.lock:
                if not self.kept:
                    break
                if len(self.kept) != left:
                    left, since = len(self.kept), time.monotonic()
                self.lock.wait(0.1)
        with self.lock:
            if self.sock:
                self.sock.close()
            return len(self.kept)

    def _flush(self, patient):
        while True:
            with self.lock:
                if self.refused:
                    raise Refused(self.refused)
                if self.sock is None:
                    connect = True
                elif self.sent < len(self.kept):
                    connect, sock, data = False, self.sock, self.kept[self.sent]
                    self.sent += 1
                else:
                    return
            if connect:
                if not self._connect() and not patient:
                    return
                continue
            try:
                sock.sendall(struct.pack("<II", len(data), zlib.crc32(data)) + data)
            except OSError:
                self._lost(sock)

    def _connect(self):
        try:
            sock = socket.create_connection(self.address, timeout=10)
            sock.settimeout(None)
        except OSError:
            time.sleep(0.5)
            return False
        with self.lock:
            self.sock, self.sent, self.acknowledged = sock, 0, 0
        threading.Thread(target=self._listen, args=(sock,), daemon=True).start()
        return True

    def _lost(self, sock):
        with self.lock:
            if self.sock is sock:
                self.sock = None
                self.lock.notify_all()
        sock.close()

    def _listen(self, sock):
        try:
            for line in sock.makefile(encoding="utf-8"):
                word, _, text = line.strip().partition(" ")
                with self.lock:
                    if self.sock is not sock:
                        return
                    if word == "ok":
                        for _ in range(int(text) - self.acknowledged):
                            self.kept.popleft()
                            self.sent -= 1
                        self.acknowledged = int(text)
                    elif text.startswith("frame "):
                        self.refused = text  # it would be refused again
                    else:
                        print("feed.py:", word, text, file=sys.stderr)
                        if word == "error":
                            time.sleep(0.5)
                    self.lock.notify_all()
        except OSError:
            pass
        self._lost(sock)


def main():
    p = argparse.ArgumentParser(description="Send a table from standard input to `ingest run`.")
    p.add_argument("--to", default="127.0.0.1:9110", help="address of the machine, HOST:PORT")
    p.add_argument("--rate", type=float, required=True, help="samples a second")
    p.add_argument("--frame", type=float, default=0.1, help="seconds in a frame")
    p.add_argument("--speed", type=float, default=1, help="times as fast as a live sensor; 0: as fast as possible")
    p.add_argument("--tool", default="", help="tool in use")
    args = p.parse_args()
    host, _, port = args.to.rpartition(":")
    names = sys.stdin.readline().strip().split(",")
    session = time.time_ns()
    more = {"tool": args.tool} if args.tool else {}
    feed, first, rows = Feed(host, int(port)), 0, []
    size = max(1, round(args.rate * args.frame))
    began = time.monotonic()

    def send():
        nonlocal first, rows
        if not rows:
            return
        columns = {n: pa.array(x, pa.float32()) for n, x in zip(names, zip(*rows))}
        feed.send(frame(session, first, session + round(first / args.rate * 1e9), columns, **more))
        first, rows = first + len(rows), []
        if args.speed:
            time.sleep(max(0, first / args.rate / args.speed - (time.monotonic() - began)))

    for line in sys.stdin:
        rows.append([float(x) for x in line.split(",")])
        if len(rows) == size:
            send()
    send()
    left = feed.close()
    print(f"{first} samples sent, {left} frames not acknowledged")


if __name__ == "__main__":
    try:
        main()
    except Refused as e:
        sys.exit(f"feed.py: {e}")
