"""generate() with the argument names of Hugging Face transformers, for programs that were written for them.

    from verbatim import Model
    from verbatim.transformers import generate

    model = Model.load("models/target")
    print(generate(model, "def fibonacci(n):", max_new_tokens=64, do_sample=True, temperature=0.8, seed=7)[0].text)

Names, meanings and defaults are those of transformers' GenerationConfig. What Verbatim cannot do is no argument here, so
that asking for it is a TypeError. `transformers` itself is not needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

import verbatim

__all__ = ["generate"]

# One prompt or several, each a text or a sequence of tokens; Any is a NumPy array.
Inputs = Union[str, Sequence[int], Sequence[str], Sequence[Sequence[int]], Any]

_DEFAULTS: dict[str, Any] = {"temperature": 1.0, "top_k": 50, "top_p": 1.0, "min_p": 0.0}


def generate(
    model: verbatim.Model, inputs: Inputs, *,
    max_new_tokens: int | None = None, max_length: int | None = None, do_sample: bool = False,
    temperature: float | None = None, top_k: int | None = None, top_p: float | None = None, min_p: float | None = None,
    repetition_penalty: float = 1.0, stop_strings: str | Sequence[str] | None = None,
    eos_token_id: int | Sequence[int] | None = None, suppress_tokens: Sequence[int] | None = None,
    sequence_bias: Mapping[tuple[int, ...], float] | None = None, max_time: float | None = None,
    num_beams: int = 1, num_return_sequences: int = 1, seed: int = 0, recipe: str | None = None,
) -> list[verbatim.Result]:  # fmt: skip
    """Continue one text or several, and return a list of Results. Their tokens are the new ones alone.

    Args:
        model: A model that is loaded.
        inputs: A str, a sequence of tokens, or a sequence of either; a NumPy array of tokens counts as one.
        max_new_tokens: The most tokens to generate. Without it and without max_length 20, as in transformers.
        max_length: The most tokens of input and text together.
        do_sample: Draw tokens by their probability; without it the likeliest token comes.
        temperature, top_k, top_p, min_p: With do_sample: 1.0, 50, 1.0 and none unless given.
        repetition_penalty: Above 1, tokens already there become less likely.
        stop_strings: Texts that end the text. Unlike in transformers, the result's text ends before them.
        eos_token_id: Tokens that end the text, besides the model's own.
        suppress_tokens: Tokens that never come.
        sequence_bias: Numbers that are added to the logits of tokens; each key is a tuple of one token.
        max_time: Seconds after which the text ends.
        num_beams, num_return_sequences: 1; Verbatim has no other.
        seed: The same seed gives the same text, which transformers takes from a generator of its own.
        recipe: The recipe to decode with, if not the model's first one.
    """
    if num_beams != 1 or num_return_sequences != 1:
        raise verbatim.UsageError("num_beams and num_return_sequences are 1: Verbatim has no beam search")
    if max_new_tokens is not None and max_length is not None:
        raise verbatim.UsageError("max_new_tokens and max_length say the same in two ways: give one of them")
    options: dict[str, Any] = {"repetition_penalty": repetition_penalty, "seed": seed, "recipe": recipe}
    options.update(_sampling(do_sample, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p))
    if stop_strings is not None:
        options["stop"] = stop_strings
    if eos_token_id is not None:
        options["stop_tokens"] = [eos_token_id] if isinstance(eos_token_id, int) else eos_token_id
    if suppress_tokens is not None or sequence_bias is not None:
        options["logit_bias"] = _biases(suppress_tokens or (), sequence_bias or {})
    if max_time is not None:
        options["timeout"] = max_time
    prompts = _prompts(inputs)
    if max_length is not None:
        return _up_to(model, prompts, max_length, options)
    return model.batch(prompts, max_tokens=20 if max_new_tokens is None else max_new_tokens, **options)


def _sampling(do_sample: bool, **given: float | None) -> dict[str, Any]:
    if do_sample:
        return {name: _DEFAULTS[name] if value is None else value for name, value in given.items()}
    named = [name for name, value in given.items() if value is not None]
    if named:
        raise verbatim.UsageError(f"{named[0]} means nothing without do_sample=True: give both or neither")
    return {}


def _biases(suppressed: Sequence[int], biased: Mapping[tuple[int, ...], float]) -> dict[int, float]:
    biases: dict[int, float] = {}
    for tokens, bias in biased.items():
        if not isinstance(tokens, tuple) or len(tokens) != 1:
            raise verbatim.UsageError(f"sequence_bias has the key {tokens!r}: only tuples of one token can be biased")
        biases[tokens[0]] = bias
    for token in suppressed:
        biases[token] = float("-inf")
    return biases


def _prompts(inputs: Inputs) -> list[Any]:
    if hasattr(inputs, "tolist"):
        inputs = inputs.tolist()  # NumPy's arrays, and others'
    if isinstance(inputs, str):
        return [inputs]
    prompts = [prompt.tolist() if hasattr(prompt, "tolist") else prompt for prompt in inputs]
    return [prompts] if prompts and isinstance(prompts[0], int) else prompts


def _up_to(model: verbatim.Model, prompts: list[Any], length: int, options: dict[str, Any]) -> list[verbatim.Result]:
    tokens = [model.tokenize(prompt) if isinstance(prompt, str) else prompt for prompt in prompts]
    longest = max((len(each) for each in tokens), default=0)
    if longest >= length:
        raise verbatim.UsageError(f"the input has {longest} tokens, and max_length {length} leaves no room for more")
    streams = [model.generate(each, max_tokens=length - len(each), stream=True, **options) for each in tokens]
    return [stream.result() for stream in streams]
