"""Prints each alert of a plant once: python consumer.py localhost:9092"""

import sys

from confluent_kafka import Consumer

consumer = Consumer(
    {
        "bootstrap.servers": sys.argv[1],
        "group.id": "print-alerts-python",  # Kafka remembers how far this group has read
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",  # librdkafka's default
    }
)
consumer.subscribe(["tcm.alerts.v1"])
seen = set()  # a program that runs for years forgets the oldest
while True:
    message = consumer.poll(1.0)
    if message is None:
        continue
    if message.error():
        print(message.error(), file=sys.stderr)
        continue
    headers = {name: value.decode() for name, value in message.headers() or []}
    if headers.get("ce_type") == "io.tcm.alert.v1" and headers["ce_id"] not in seen:
        seen.add(headers["ce_id"])
        print(message.value().decode(), flush=True)
