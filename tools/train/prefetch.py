"""Batches that are made in the background while the device works."""

from collections.abc import Iterable, Iterator
from queue import Queue
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")

WAITING = 16


def prefetch(items: Iterable[Item]) -> Iterator[Item]:
    """The same items in the same order; a failure in the background is raised here."""
    queue: Queue[tuple[Item | None, BaseException | None]] = Queue(WAITING)

    def produce() -> None:
        failure: BaseException | None = None
        try:
            for item in items:
                queue.put((item, None))
        except BaseException as error:
            failure = error
        queue.put((None, failure or StopIteration()))

    Thread(target=produce, daemon=True).start()
    while True:
        item, end = queue.get()
        if isinstance(end, StopIteration):
            return
        if end is not None:
            raise end
        yield item
