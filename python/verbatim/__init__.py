"""Language models with exactly lossless speculative decoding.

    import verbatim

    model = verbatim.Model.load("models/target")
    print(model.generate("def fibonacci(n):", max_tokens=64).text)

Same model, same prompt, same seed: the same bytes, with any lossless recipe, alone or in a batch, from any number of
threads. docs/python.md shows the whole package in five minutes.
"""

from verbatim._conversation import Conversation
from verbatim._model import Model, Score
from verbatim._native import (
    BadInputError,
    EngineStats,
    Error,
    MachineError,
    Passes,
    Result,
    ScoredToken,
    Stats,
    TokenOrigin,
    UsageError,
    recipe_names,
    use_portable_kernels,
    version,
)
from verbatim._session import Session
from verbatim._streams import AsyncStream, Stream

__version__: str = version()

__all__ = [
    "AsyncStream",
    "BadInputError",
    "Conversation",
    "EngineStats",
    "Error",
    "MachineError",
    "Model",
    "Passes",
    "Result",
    "Score",
    "ScoredToken",
    "Session",
    "Stats",
    "Stream",
    "TokenOrigin",
    "UsageError",
    "recipe_names",
    "use_portable_kernels",
    "version",
]

# So that a traceback and help() call them by the name under which they are imported.
for _class in (EngineStats, Passes, Result, ScoredToken, Stats, TokenOrigin, Model, Score, Conversation, Session, Stream,
               AsyncStream):  # fmt: skip
    _class.__module__ = "verbatim"
del _class
