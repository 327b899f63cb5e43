"""Training loops that call ``step`` themselves, as coroutines: one per seed, in lockstep."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


class Ended(BaseException):
    """Raised inside a loop whose training is given up; not an Exception, so that no loop swallows it."""


class Turn(threading.Thread):
    """A function in a thread of its own that runs only between ``resume`` and its next ``ask``.

    Args:
        loop: the function, called with this object.
        around: entered whenever it runs.
    """

    def __init__(self, loop: Callable[["Turn"], Any], around: AbstractContextManager):
        super().__init__(daemon=True)
        self._loop, self._around = loop, around
        self._go, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._answer: Any = None
        self._error: BaseException | None = None
        self._given_up = False
        self.request: Any = None
        """What it asked for last."""
        self.finished = False

    def run(self) -> None:
        """See ``Thread.run``."""
        self._go.acquire()
        try:
            if not self._given_up:
                self._loop(self)
        except Ended:
            pass
        except BaseException as error:
            self._error = error
        self.finished = True
        self._back.release()

    def ask(self, request: Any) -> Any:
        """Called by the loop: hand over a request and wait for its answer."""
        self.request = request
        self._back.release()
        self._go.acquire()
        if self._given_up:
            raise Ended
        return self._answer

    def resume(self, answer: Any = None) -> None:
        """Let it run until it asks again or has finished.

        Raises:
            Exception: what the loop raised.
        """
        if not self.is_alive() and not self.finished:
            self.start()
        self._answer = answer
        with self._around:
            self._go.release()
            self._back.acquire()
        if self._error:
            raise self._error

    def give_up(self) -> None:
        """End it, wherever it is."""
        if self.is_alive() and not self.finished:
            self._given_up = True
            self._go.release()
        if self.is_alive():
            self.join()
