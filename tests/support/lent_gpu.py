"""Stands for the package ``spaces``: each call runs in a process of its own, and all that passes is pickled."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

DONE = "done"


class LentGpu:
    """``spaces.GPU`` for generators. asked: the seconds that each call was granted, in their order."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, duration: Callable[..., int]) -> Callable[..., Callable[..., Iterator[Any]]]:
        def decorate(work: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
            def lent(*arguments: Any) -> Iterator[Any]:
                self.asked.append(duration(*arguments))
                context = multiprocessing.get_context("spawn")
                results: Any = context.Queue()
                worker = context.Process(target=_serve, args=(work, arguments, results), daemon=True)
                worker.start()
                try:
                    while (found := results.get(timeout=120)) != DONE:
                        yield found
                finally:
                    worker.terminate()
                    worker.join()

            return lent

        return decorate


def _serve(work: Callable[..., Iterator[Any]], arguments: tuple[Any, ...], results: Any) -> None:
    for found in work(*arguments):
        results.put(found)
    results.put(DONE)
