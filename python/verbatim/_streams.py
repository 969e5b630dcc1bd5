"""Answers that are read while they come into being."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from verbatim._native import Answer, Result

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future


class Stream:
    """The pieces of a text as they become final: an iterator of str.

    A piece never ends within a character. `result()` has the whole answer; leaving a `with` block, or dropping the
    stream, cancels what is left of it. One thread reads a stream at a time; any thread may cancel it.
    """

    __slots__ = ("_answer", "_when_complete")

    def __init__(self, answer: Answer, when_complete: Callable[[Result], None] | None = None) -> None:
        self._answer = answer
        self._when_complete = when_complete

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> str:
        piece = self._answer.next()
        if piece is None:
            self.result()
            raise StopIteration
        return piece

    def result(self) -> Result:
        """Wait for the end and return the whole answer, a Result. Raises the Error that ended it, if one did."""
        result = self._answer.result()
        when_complete, self._when_complete = self._when_complete, None
        if when_complete is not None:
            when_complete(result)
        return result

    def cancel(self) -> None:
        """Let the answer end before the next pass of the model; what there is by then is the answer."""
        self._answer.cancel()

    @property
    def done(self) -> bool:
        """Whether the answer is complete or has failed."""
        return self._answer.done()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        self._answer.cancel()


class AsyncStream:
    """The pieces of a text as they become final, for `async for`. Otherwise as Stream is."""

    __slots__ = ("_alarm", "_answer")

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._alarm = _Alarm(answer)

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> str:
        answer = self._answer
        while True:
            ended = answer.done()
            piece = answer.poll()
            if piece is not None:
                return piece
            if ended:
                answer.result()
                raise StopAsyncIteration
            await self._alarm.wait()

    async def result(self) -> Result:
        """Wait for the end and return the whole answer, a Result. Raises the Error that ended it, if one did."""
        return await result_of(self._answer, self._alarm)

    def cancel(self) -> None:
        """Let the answer end before the next pass of the model; what there is by then is the answer."""
        self._answer.cancel()

    @property
    def done(self) -> bool:
        """Whether the answer is complete or has failed."""
        return self._answer.done()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._answer.cancel()


class _Alarm:
    """Wakes the coroutines that wait for something new of one answer.

    However many wait, their event loop watches the answer's descriptor once, as it keeps but one callback for each. All
    of them look again whenever it wakes.
    """

    __slots__ = ("_answer", "_waiting")

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._waiting: dict[AbstractEventLoop, list[Future[None]]] = {}

    async def wait(self) -> None:
        """Wait until the engine has something new, and cancel the answer if the waiting is cancelled."""
        import asyncio  # takes longer to import than all of this package

        loop = asyncio.get_running_loop()
        descriptor = self._answer.fileno()
        if loop not in self._waiting:
            loop.add_reader(descriptor, self._wake, loop, descriptor)
            self._waiting[loop] = []
        woken: Future[None] = loop.create_future()
        self._waiting[loop].append(woken)
        try:
            await woken
        except asyncio.CancelledError:
            self._answer.cancel()
            raise
        finally:
            waiting = self._waiting.get(loop, [])
            if woken in waiting:
                waiting.remove(woken)
                if not waiting:
                    del self._waiting[loop]
                    loop.remove_reader(descriptor)

    def _wake(self, loop: AbstractEventLoop, descriptor: int) -> None:
        loop.remove_reader(descriptor)
        # Before anyone looks, so that nothing that comes after the look is missed.
        self._answer.rest()
        for woken in self._waiting.pop(loop, []):
            if not woken.done():
                woken.set_result(None)


async def result_of(answer: Answer, alarm: _Alarm | None = None) -> Result:
    """Wait for the end of an answer and return its result. Who else waits for it must have the same alarm."""
    if alarm is None:
        alarm = _Alarm(answer)
    while not answer.done():
        await alarm.wait()
    return answer.result()


def results_of(answers: Sequence[Answer]) -> list[Result]:
    """Wait for the ends of answers and return their results. What goes wrong with one cancels the others."""
    try:
        return [answer.result() for answer in answers]
    except BaseException:
        for answer in answers:
            answer.cancel()
        raise


