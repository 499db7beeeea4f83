"""Celery with broker and results behind the same URL, its worker in a thread."""

import uuid

import pytest
from celery import Celery, chord, group
from celery.contrib.testing.worker import start_worker
from conftest import URL

PATIENCE = 40


@pytest.fixture(scope="module")
def app():
    prefix = f"celery-{uuid.uuid4().hex}:"
    app = Celery("tests", broker=URL, backend=URL)
    app.conf.update(
        broker_transport_options={"global_keyprefix": prefix, "visibility_timeout": 3600},
        result_backend_transport_options={"global_keyprefix": prefix},
        result_expires=600,
        task_track_started=True,
        broker_connection_retry_on_startup=True,
    )

    @app.task(name="add")
    def add(left, right):
        return left + right

    @app.task(name="total")
    def total(numbers):
        return sum(numbers)

    @app.task(name="fail")
    def fail():
        raise ValueError("on purpose")

    @app.task(name="third_time", bind=True, max_retries=5)
    def third_time(self):
        if self.request.retries < 2:
            raise self.retry(countdown=0.1)
        return self.request.retries

    with start_worker(app, pool="threads", concurrency=4, perform_ping_check=False, loglevel="ERROR"):
        yield app
    app.close()
    import redis

    with redis.Redis.from_url(URL) as client:
        for key in client.scan_iter(match=f"{prefix}*", count=1000):
            client.unlink(key)


def test_a_task_gives_its_result(app):
    assert app.tasks["add"].delay(2, 3).get(timeout=PATIENCE) == 5


def test_many_tasks_and_their_sum(app):
    add, total = app.tasks["add"], app.tasks["total"]
    assert group(add.s(n, n) for n in range(50))().get(timeout=PATIENCE) == [2 * n for n in range(50)]
    assert chord((add.s(n, 1) for n in range(10)), total.s())().get(timeout=PATIENCE) == 55


def test_an_error_reaches_the_caller(app):
    with pytest.raises(ValueError, match="on purpose"):
        app.tasks["fail"].delay().get(timeout=PATIENCE)


def test_a_task_is_tried_again_and_a_later_one_waits(app):
    assert app.tasks["third_time"].delay().get(timeout=PATIENCE) == 2
    later = app.tasks["add"].apply_async((1, 1), countdown=1)
    assert not later.ready()
    assert later.get(timeout=PATIENCE) == 2
