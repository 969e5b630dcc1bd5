from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, overload

from verbatim import _native
from verbatim._model import Model
from verbatim._native import Result
from verbatim._streams import Stream

def chat_answer(
    model: _native.Model, function: str, messages: Iterable[Mapping[str, Any]],
    tools: Iterable[Mapping[str, Any]] | None, options: dict[str, Any], pieces: bool,
) -> _native.Answer: ...

class Conversation:
    def __init__(self, model: Model, system: str = ..., *, format: str | None = ...) -> None: ...
    @overload
    def reply(
        self, message: str, *, stream: Literal[False] = ..., 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> Result: ...
    @overload
    def reply(
        self, message: str, *, stream: Literal[True], 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> Stream: ...
    @property
    def messages(self) -> list[dict[str, str]]: ...
    @property
    def tokens(self) -> list[int]: ...
    def clear(self) -> None: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    @classmethod
    def restore(cls, model: Model, path: str | PathLike[str]) -> Conversation: ...
