"""What every test gets: a client of its own, and names that nobody else uses."""

import os
import uuid

import pytest
import redis

URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")


@pytest.fixture
def url():
    return URL


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def client(request):
    with redis.Redis.from_url(URL, protocol=request.param, decode_responses=True) as client:
        yield client


@pytest.fixture
def name():
    """A prefix; what begins with it is deleted after the test."""
    prefix = f"t{uuid.uuid4().hex}:"
    yield prefix
    with redis.Redis.from_url(URL) as client:
        for key in client.scan_iter(match=f"{prefix}*", count=1000):
            client.unlink(key)
