"""A cluster of Kafka on loopback, in threads of the tests: the mock of librdkafka, and what it has appended.

The package for Python has no calls for a mock's faults, so that they go to the library that comes with it.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, TopicPartition

TOPIC = "audit"
PARTITIONS = 4
_PRODUCE = 0
_POINTERS = ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new")


class Appended(NamedTuple):
    partition: int
    key: str
    value: bytes


class Cluster:
    """A broker with a topic; ``fail`` gives it errors for the next batches that are produced."""

    def __init__(self, library: ctypes.CDLL, pointer: ctypes.c_void_p) -> None:
        self._library, self._pointer = library, pointer
        self.broker = library.rd_kafka_mock_cluster_bootstraps(pointer).decode()
        assert not library.rd_kafka_mock_topic_create(pointer, TOPIC.encode(), PARTITIONS, 1)

    @property
    def address(self) -> str:
        return f"kafka://{self.broker}/{TOPIC}"

    def fail(self, *errors: int) -> None:
        numbers = (ctypes.c_int * len(errors))(*errors)
        count = ctypes.c_size_t(len(errors))
        self._library.rd_kafka_mock_push_request_errors_array(
            self._pointer, ctypes.c_int16(_PRODUCE), count, numbers
        )

    def go_down(self) -> None:
        assert not self._library.rd_kafka_mock_broker_set_down(self._pointer, ctypes.c_int32(1))

    def come_up(self) -> None:
        assert not self._library.rd_kafka_mock_broker_set_up(self._pointer, ctypes.c_int32(1))


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    library, message = _library(), ctypes.create_string_buffer(512)
    options = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(options, b"log_level", b"0", message, ctypes.c_size_t(512))
    handle = ctypes.c_void_p(library.rd_kafka_new(0, options, message, ctypes.c_size_t(512)))
    assert handle, message.value
    pointer = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(handle, 1))
    try:
        yield Cluster(library, pointer)
    finally:
        library.rd_kafka_mock_cluster_destroy(pointer)
        library.rd_kafka_destroy(handle)


@contextmanager
def reading(cluster: Cluster) -> Iterator["Log"]:
    """Follow the topic from its beginning."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.broker,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        }
    )
    try:
        yield Log(consumer)
    finally:
        consumer.close()


class Log:
    """What was appended to the topic, each partition in its order."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.messages: list[Appended] = []

    def read(self) -> Sequence[Appended]:
        """Read to the end of each partition."""
        ends = {number: len(self.of(number)) for number in range(PARTITIONS)}
        self._consumer.assign([TopicPartition(TOPIC, number, at) for number, at in ends.items()])
        while ends:
            message = self._consumer.poll(10)
            assert message is not None
            error = message.error()
            if error is None:
                appended = Appended(message.partition(), message.key().decode(), message.value())
                self.messages.append(appended)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends.pop(message.partition(), None)
        return self.messages

    def of(self, partition: int) -> Sequence[Appended]:
        return [each for each in self.messages if each.partition == partition]


@cache
def _library() -> ctypes.CDLL:
    folder = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    (path,) = folder.glob("librdkafka-*")
    library = ctypes.CDLL(str(path))
    for name in _POINTERS:
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return library
