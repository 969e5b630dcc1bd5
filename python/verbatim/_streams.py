"""Answers that are read while they come into being."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from verbatim._native import Answer, Result


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

    __slots__ = ("_answer",)

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

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
            await _woken(answer)

    async def result(self) -> Result:
        """Wait for the end and return the whole answer, a Result. Raises the Error that ended it, if one did."""
        return await result_of(self._answer)

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


async def _woken(answer: Answer) -> None:
    """Wait until the engine has something new, and cancel the answer if the waiting is cancelled."""
    import asyncio  # takes longer to import than all of this package

    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()
    descriptor = answer.fileno()

    def wake() -> None:
        loop.remove_reader(descriptor)
        if not woken.done():
            woken.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        await woken
    except asyncio.CancelledError:
        answer.cancel()
        raise
    finally:
        loop.remove_reader(descriptor)
    answer.rest()


async def result_of(answer: Answer) -> Result:
    """Wait for the end of an answer and return its result."""
    while not answer.done():
        await _woken(answer)
    return answer.result()


def results_of(answers: Sequence[Answer]) -> list[Result]:
    """Wait for the ends of answers and return their results. What goes wrong with one cancels the others."""
    try:
        return [answer.result() for answer in answers]
    except BaseException:
        for answer in answers:
            answer.cancel()
        raise


