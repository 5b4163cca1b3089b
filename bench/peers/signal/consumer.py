"""Windows from Kafka to results, as a good engineer writes it in Python: what monitor run is measured against.

Features of fast.py less those of the tool's first windows, a network of two layers, k of n, and a transaction for each fetch.
The network's weights are drawn: what it says is not Flank's, what it takes is.

    python consumer.py BROKER SETTLE N    prints milliseconds of processor for each of N windows after the first SETTLE
"""

import json
import sys
import time

import fast  # first: it holds the libraries to one thread
import numpy as np
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

REFERENCE, HIDDEN, K, N = 10, (30, 30), 5, 8
TOPIC, RESULTS = "tcm.windows.v1", "peer.results"


class Judge:
    """Verdicts of machines from their features."""

    def __init__(self):
        self.weights, self.first, self.reference, self.last = None, {}, {}, {}

    def layers(self, n):
        rng = np.random.default_rng(1)
        sizes = (n, *HIDDEN, 2)
        return [(rng.normal(0, a**-0.5, (a, b)).astype(np.float32), np.zeros(b, np.float32)) for a, b in zip(sizes, sizes[1:])]

    def posterior(self, values, tool):
        if tool not in self.reference:
            rows = self.first.setdefault(tool, [])
            rows.append(values)
            if len(rows) < REFERENCE:
                return None
            self.reference[tool] = np.median(self.first.pop(tool), 0)
        self.weights = self.weights or self.layers(len(values))
        x = np.nan_to_num(values - self.reference[tool])
        for w, b in self.weights[:-1]:
            x = 1 / (1 + np.exp(-(x @ w + b)))
        z = x @ self.weights[-1][0] + self.weights[-1][1]
        e = np.exp(z - z.max())
        return float(e[1] / e.sum())

    def result(self, message):
        batch = fast.opened(message.value())
        machine, tool, seq = (batch.column(batch.schema.get_field_index(name))[0].as_py() for name in ("machine", "tool", "seq"))
        _, values = fast.features_in(batch)
        p = self.posterior(values, (machine, tool))
        last = self.last.setdefault(machine, [])
        last.append(p is not None and p > 0.5)
        del last[:-N]
        return json.dumps({"machine": machine, "tool": tool, "seq": seq, "posterior": p, "alarm": sum(last) >= K})


def main(broker, settle, n):
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(RESULTS, 1, 1)])[RESULTS].result()
    consumer = Consumer({
        "bootstrap.servers": broker, "group.id": "peer", "auto.offset.reset": "earliest", "enable.auto.commit": False,
        "isolation.level": "read_committed", "fetch.wait.max.ms": 100, "max.partition.fetch.bytes": 16 << 20,
        "fetch.max.bytes": 64 << 20, "receive.message.max.bytes": 128 << 20, "topic.metadata.refresh.interval.ms": 1000,
    })
    producer = Producer({"bootstrap.servers": broker, "transactional.id": "peer", "linger.ms": 0})
    producer.init_transactions()
    consumer.subscribe([TOPIC])
    judge, done, begun, measured = Judge(), 0, None, 0
    while done < settle + n:
        if begun is None and done >= settle:
            begun, measured = time.process_time(), done
        messages = [m for m in consumer.consume(16, 0.5) if not m.error() and len(m.value()) > 100_000]  # no ledgers
        if not messages:
            continue
        producer.begin_transaction()
        for m in messages:
            producer.produce(RESULTS, key=m.key(), value=judge.result(m))
        producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), consumer.consumer_group_metadata())
        producer.commit_transaction()
        done += len(messages)
    used = time.process_time() - begun
    consumer.close()
    with open("/proc/self/status") as f:
        kb = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    print(json.dumps({"milliseconds": 1e3 * used / (done - measured), "mb": kb / 1e3}))


if __name__ == "__main__":
    np.seterr(divide="ignore", invalid="ignore", over="ignore")
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
