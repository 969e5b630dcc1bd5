from collections.abc import Callable, Sequence
from os import PathLike
from types import TracebackType
from typing import Any

from verbatim._conversation import Conversation
from verbatim._model import Model
from verbatim._native import Result

Path = str | bytes | PathLike[str] | PathLike[bytes]

class Session:
    def __init__(self, model: Model, *, capacity: int = ...) -> None: ...
    def generate(
        self, prompt: str | Sequence[int], *, on_text: Callable[[str], object] | None = ...,
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ...,
    ) -> Result: ...
    def reply(
        self, conversation: Conversation, message: str, *, on_text: Callable[[str], object] | None = ...,
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ...,
    ) -> Result: ...
    def cancel(self) -> None: ...
    def truncate(self, length: int) -> None: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def evaluated(self) -> int: ...
    def save(self, path: Path) -> None: ...
    def restore(self, path: Path) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Session: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
