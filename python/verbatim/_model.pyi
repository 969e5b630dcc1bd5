from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, overload

import numpy
from numpy.typing import NDArray
from verbatim import _native
from verbatim._conversation import Conversation
from verbatim._native import EngineStats, Result, ScoredToken
from verbatim._session import Session
from verbatim._streams import AsyncStream, Stream

Prompt = str | Sequence[int]
Path = str | bytes | PathLike[str] | PathLike[bytes]

class Score:
    def __init__(self, tokens: list[ScoredToken]) -> None: ...
    tokens: list[ScoredToken]
    @property
    def total(self) -> float: ...
    @property
    def mean(self) -> float: ...
    @property
    def perplexity(self) -> float: ...

class Model:
    def __init__(self, native: _native.Model) -> None: ...
    @classmethod
    def load(
        cls, path: Path, recipe: str = ..., *, recipes: str | Sequence[str] = ..., formats: str | Sequence[str] = ...,
        cache: str | None = ..., draft_model: Path | None = ..., threads: int = ..., max_batch: int = ...,
        capacity: int = ..., cache_bytes: int = ..., prompt_cache: bool = ..., cache_dir: Path | None = ...,
        progress: Callable[[float], object] | None = ...,
    ) -> Model: ...
    @overload
    def generate(
        self, prompt: Prompt, *, stream: Literal[False] = ..., 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> Result: ...
    @overload
    def generate(
        self, prompt: Prompt, *, stream: Literal[True], 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> Stream: ...
    @overload
    async def agenerate(
        self, prompt: Prompt, *, stream: Literal[False] = ..., 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> Result: ...
    @overload
    async def agenerate(
        self, prompt: Prompt, *, stream: Literal[True], 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> AsyncStream: ...
    def batch(
        self, prompts: Iterable[Prompt], *, 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> list[Result]: ...
    @overload
    def chat(
        self, messages: Iterable[Mapping[str, Any]], *, tools: Iterable[Mapping[str, Any]] | None = ..., stream: Literal[False] = ..., 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> Result: ...
    @overload
    def chat(
        self, messages: Iterable[Mapping[str, Any]], *, tools: Iterable[Mapping[str, Any]] | None = ..., stream: Literal[True], 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> Stream: ...
    @overload
    async def achat(
        self, messages: Iterable[Mapping[str, Any]], *, tools: Iterable[Mapping[str, Any]] | None = ..., stream: Literal[False] = ..., 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> Result: ...
    @overload
    async def achat(
        self, messages: Iterable[Mapping[str, Any]], *, tools: Iterable[Mapping[str, Any]] | None = ..., stream: Literal[True], 
        max_tokens: int = ..., temperature: float = ..., top_k: int = ..., top_p: float = ..., min_p: float = ...,
        repetition_penalty: float = ..., presence_penalty: float = ..., frequency_penalty: float = ..., seed: int = ...,
        logit_bias: dict[int, float] | None = ..., stop: str | Sequence[str] = ..., stop_tokens: Sequence[int] = ...,
        shown_tokens: Sequence[int] = ..., ignore_eos: bool = ..., schema: str | dict[str, Any] | None = ...,
        regex: str | None = ..., top_logprobs: int | None = ..., origins: bool = ..., prefill_chunk: int = ...,
        recipe: str | None = ..., priority: int = ..., timeout: float | None = ...,
    ) -> AsyncStream: ...
    def conversation(self, system: str = ..., *, format: str | None = ...) -> Conversation: ...
    def session(self, *, capacity: int = ...) -> Session: ...
    def score(self, text: Prompt, *, top_logprobs: int = ..., reading: str = ...) -> Score: ...
    def logits(self, text: Prompt, *, reading: str = ...) -> NDArray[numpy.float32]: ...
    def tokenize(self, text: str, *, add_bos: bool = ...) -> list[int]: ...
    def detokenize(self, tokens: Sequence[int]) -> str: ...
    def piece(self, token: int) -> str: ...
    def find_token(self, piece: str) -> int | None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def recipe(self) -> str: ...
    @property
    def context(self) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def bos_token(self) -> int | None: ...
    @property
    def eos_tokens(self) -> list[int]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def stats(self) -> EngineStats: ...
    def __enter__(self) -> Model: ...
    def __exit__(
        self, type: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
