"""Buckets of tokens in Redis, or a server that speaks its protocol; needs the extra ``redis``."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from app.core.contracts.leases import HoldRequest, Lease, LeaseRequest

_PREFIX: Final = "{sluice}:"
"""The braces keep all keys in one slot of a cluster, so that one script may use them together."""
_PRESENT_MS: Final = 2_000
"""How long a process counts after it asked last."""

# Time is the server's own, so that clocks of hosts do not matter. An absent bucket is full: a bucket expires a second
# after it would be.
_LEASE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local answer = { redis.call('ZCARD', KEYS[1]) }
for i = 2, #KEYS do
  local at = 3 + (i - 2) * 4
  local rate, burst = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local owed, wanted = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local kept = redis.call('HMGET', KEYS[i], 'level', 'at')
  local level = burst
  if kept[1] then
    local passed = math.max(0, now - tonumber(kept[2])) / 1000
    level = math.min(burst, tonumber(kept[1]) + passed * rate)
  end
  level = level - owed
  local granted = wanted
  if wanted > 0 then
    granted = math.max(0, math.min(wanted, math.floor(level)))
  end
  level = math.min(burst, level - granted)
  redis.call('HSET', KEYS[i], 'level', string.format('%.6f', level), 'at', string.format('%.0f', now))
  redis.call('PEXPIRE', KEYS[i], string.format('%.0f', math.ceil((burst - level) / rate * 1000) + 1000))
  answer[#answer + 1] = string.format('%.6f', granted)
  answer[#answer + 1] = string.format('%.6f', level)
end
return answer
"""

_HOLD: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answer = {}
for i = 1, #KEYS do
  local at = 3 + (i - 1) * 3
  local cap, running, wanted = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local others = 0
  local kept = redis.call('HGETALL', KEYS[i])
  for j = 1, #kept, 2 do
    local held, ends = string.match(kept[j + 1], '^(%d+):(%d+)$')
    if tonumber(ends) <= now then
      redis.call('HDEL', KEYS[i], kept[j])
    elseif kept[j] ~= ARGV[1] then
      others = others + tonumber(held)
    end
  end
  local granted = math.max(0, math.min(wanted, cap - others))
  local held = math.max(granted, running)
  if held > 0 then
    redis.call('HSET', KEYS[i], ARGV[1], string.format('%d:%.0f', held, now + ARGV[2]))
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
  else
    redis.call('HDEL', KEYS[i], ARGV[1])
  end
  answer[i] = granted
end
return answer
"""


class RedisBuckets:
    """Keeps the buckets under keys that begin with ``{sluice}:``; a database of its own is best."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._lease = client.register_script(_LEASE)
        self._hold = client.register_script(_HOLD)
        self._process = uuid4().hex

    @classmethod
    def at(cls, url: str, *, timeout_s: float) -> "RedisBuckets":
        """Return the buckets at ``url``, ``redis://`` or ``rediss://``; nothing is opened yet."""
        return cls(
            Redis.from_url(
                url,
                protocol=2,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                retry=Retry(NoBackoff(), 0),
                decode_responses=True,
            )
        )

    async def lease(self, requests: Sequence[LeaseRequest]) -> tuple[int, list[Lease]]:
        """See ``TokenBuckets``."""
        keys = [f"{_PREFIX}processes", *(f"{_PREFIX}rate:{request.bucket}" for request in requests)]
        arguments: list[str | int | float] = [self._process, _PRESENT_MS]
        for request in requests:
            arguments += (request.rate, request.burst, request.owed, request.wanted)
        processes, *numbers = await self._answer(self._lease, keys, arguments)
        values = [float(number) for number in numbers]
        return int(processes), [Lease(*pair) for pair in zip(values[::2], values[1::2], strict=True)]

    async def hold(self, requests: Sequence[HoldRequest]) -> list[int]:
        """See ``TokenBuckets``."""
        keys = [f"{_PREFIX}held:{request.bucket}" for request in requests]
        arguments: list[str | int | float] = [self._process, _PRESENT_MS]
        for request in requests:
            arguments += (request.cap, request.running, request.wanted)
        return [int(granted) for granted in await self._answer(self._hold, keys, arguments)]

    async def _answer(self, script: AsyncScript, keys: list[str], arguments: list[str | int | float]) -> Any:
        try:
            return await script(keys, arguments)
        except BaseException:
            # Nobody may read the answer to this as the answer to the next question.
            await self._client.connection_pool.disconnect()
            raise

    async def leave(self) -> None:
        """See ``TokenBuckets``."""
        with suppress(RedisError, OSError):
            await self._client.zrem(f"{_PREFIX}processes", self._process)
        await self._client.aclose()
