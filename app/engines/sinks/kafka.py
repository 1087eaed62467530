"""A topic of Kafka: each event is a message, whose key is its tenant, so that a tenant's events stay in one partition.

The producer is idempotent and refuses gaps: where a message fails, none that follows it is appended. A batch that was
not acknowledged as a whole is sent again by a new producer, so that a message may come twice, but first in its order.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from app.core.contracts.sinks import SinkBatch, SinkError, SinkTooLargeError

_TIME_LIMIT_S: Final = 30.0
_PAUSE_S: Final = 0.01
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GUARANTEES: Final[Mapping[str, str | int | bool]] = {
    "acks": "all",
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    # As clients of Java choose partitions, so that all of a tenant's messages are in the same one.
    "partitioner": "murmur2_random",
    # The time limit is ours: a message that timed out by itself could leave a gap.
    "message.timeout.ms": 0,
}

# The library's own lines are not for the log: what is wrong is named by the error.
_quiet = logging.getLogger("sluice.audit.librdkafka")
_quiet.addFilter(lambda _: False)


@dataclass(slots=True)
class KafkaSink:
    """Produces to ``topic`` at ``brokers`` (``host:port``).

    ``authority`` is a file of certificates to trust instead of the system's, for TLS; ``config`` is a file of lines
    such as ``sasl.password=…`` with properties of librdkafka, read when the producer is made.
    """

    brokers: Sequence[str]
    topic: str
    tls: bool
    authority: Path | None = None
    config: Path | None = None
    _producer: Producer | None = field(default=None, init=False)
    _errors: list[str] = field(default_factory=list, init=False)

    @property
    def name(self) -> str:
        """Return the first broker's address and the topic."""
        return f"kafka {self.brokers[0]}/{self.topic}"

    async def deliver(self, batch: SinkBatch) -> int:
        """Produce messages, and return once every one is on all replicas that are in sync."""
        if self._producer is None:
            self._producer = await asyncio.to_thread(self._connected)
        reports: list[KafkaError | None] = []
        is_whole = False
        try:
            self._producer.poll(0)
            self._errors.clear()
            await self._produce(self._producer, batch, reports)
            is_whole = len(reports) == len(batch.events) and not any(reports)
        except KafkaException as error:
            reports.append(error.args[0])
        except (BufferError, TimeoutError):
            pass
        finally:
            if not is_whole:
                # What is queued must not follow the batch that comes again.
                self._producer.purge()
                self._producer = None
        if not is_whole:
            raise _fault([report for report in reports if report is not None], self._errors)
        return 0

    async def _produce(self, producer: Producer, batch: SinkBatch, reports: list[KafkaError | None]) -> None:
        """Queue messages and wait for a report of each; one that failed is reported, too."""

        def report(error: KafkaError | None, _message: Message) -> None:
            reports.append(error)

        for event in batch.events:
            moment = (event.at - _EPOCH) // timedelta(milliseconds=1)
            producer.produce(
                self.topic, event.line, event.tenant.encode(), timestamp=moment, on_delivery=report
            )
        async with asyncio.timeout(_TIME_LIMIT_S):
            while len(reports) < len(batch.events):
                with suppress(
                    KafkaException
                ):  # an error that ends the producer; its messages are reported, too
                    producer.poll(0)
                await asyncio.sleep(_PAUSE_S)

    def _connected(self) -> Producer:
        """Return a producer, which connects by itself."""
        try:
            properties = _properties(self.config)
        except OSError as error:
            raise SinkError(f"The file that config= names cannot be read: {error.strerror}.") from None
        names_user = any(name.startswith("sasl.") for name in properties)
        security = ("sasl_ssl" if names_user else "ssl") if self.tls else "plaintext"
        options = {"ssl.ca.location": str(self.authority)} if self.authority is not None else {}
        try:
            return Producer(
                {
                    "client.id": "sluice",
                    **properties,
                    **options,
                    **_GUARANTEES,
                    "security.protocol": security,
                    "bootstrap.servers": ",".join(self.brokers),
                    "error_cb": lambda error: self._errors.append(error.name()),
                },
                logger=_quiet,
            )
        except KafkaException as error:
            text = str(error)
            named = [name for name in {**properties, **options} if f'"{name}"' in text]
            hint = f"check {' and '.join(named) or 'ca= and the file that config= names'}"
            raise SinkError(f"The configuration is not understood: {hint}.") from None


def _properties(path: Path | None) -> Mapping[str, str]:
    """Return the properties of a file; lines that begin with # and empty ones say nothing."""
    lines = path.read_text("utf-8").splitlines() if path is not None else []
    pairs = [line.partition("=") for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _fault(reports: Sequence[KafkaError], errors: Sequence[str]) -> SinkError:
    """Return what a batch failed by: the report of a message, or else what happened to connections last."""
    names = [report.name() for report in reports]
    if "MSG_SIZE_TOO_LARGE" in names:
        return SinkTooLargeError("A message is larger than the topic takes.")
    cause = next((name for name in names if not name.startswith("_")), None)
    cause = cause or next(iter([*reversed(errors), *names]), "no answer in time")
    return SinkError(f"The brokers do not take it: {cause}.")
