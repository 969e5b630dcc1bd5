"""Answers that are read while they come into being."""



class Stream:
    """The pieces of a text as they become final: an iterator of str.

    A piece never ends within a character. `result()` has the whole answer; leaving a `with` block, or dropping the
    stream, cancels what is left of it. One thread reads a stream at a time; any thread may cancel it.
    """

    __slots__ = ("_answer", "_told", "_when_complete")

    def __init__(self, answer, when_complete=None):
        self._answer = answer
        self._when_complete = when_complete
        self._told = when_complete is None

    def __iter__(self):
        return self

    def __next__(self):
        piece = self._answer.next()
        if piece is None:
            self.result()
            raise StopIteration
        return piece

    def result(self):
        """Wait for the end and return the whole answer, a Result. Raises the Error that ended it, if one did."""
        result = self._answer.result()
        if not self._told:
            self._told = True
            self._when_complete(result)
        return result

    def cancel(self):
        """Let the answer end before the next pass of the model; what there is by then is the answer."""
        self._answer.cancel()

    @property
    def done(self):
        """Whether the answer is complete or has failed."""
        return self._answer.done()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._answer.cancel()


class AsyncStream:
    """The pieces of a text as they become final, for `async for`. Otherwise as Stream is."""

    __slots__ = ("_answer",)

    def __init__(self, answer):
        self._answer = answer

    def __aiter__(self):
        return self

    async def __anext__(self):
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

    async def result(self):
        """Wait for the end and return the whole answer, a Result. Raises the Error that ended it, if one did."""
        return await result_of(self._answer)

    def cancel(self):
        """Let the answer end before the next pass of the model; what there is by then is the answer."""
        self._answer.cancel()

    @property
    def done(self):
        """Whether the answer is complete or has failed."""
        return self._answer.done()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exception):
        self._answer.cancel()


async def _woken(answer):
    """Wait until the engine has something new, and cancel the answer if the waiting is cancelled."""
    import asyncio  # takes longer to import than all of this package

    loop = asyncio.get_running_loop()
    woken = loop.create_future()
    descriptor = answer.fileno()

    def wake():
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


async def result_of(answer):
    """Wait for the end of an answer and return its result."""
    while not answer.done():
        await _woken(answer)
    return answer.result()


def results_of(answers):
    """Wait for the ends of answers and return their results. What goes wrong with one cancels the others."""
    try:
        return [answer.result() for answer in answers]
    except BaseException:
        for answer in answers:
            answer.cancel()
        raise


