"""The model: text in, text out."""

import math

from verbatim import _native
from verbatim._conversation import Conversation, chat_answer
from verbatim._session import Session
from verbatim._streams import AsyncStream, Stream, result_of, results_of

# What every function that generates takes as keyword arguments.
OPTIONS = """\
        max_tokens: The most tokens to generate, 128 (512 for replies in a chat).
        temperature: 0, the default, takes the likeliest token; more is more varied.
        top_k, top_p, min_p: Keep the k likeliest tokens; those that together reach this probability; those at least
            this fraction as likely as the likeliest. 0, 1 and 0 are off.
        repetition_penalty, presence_penalty, frequency_penalty: Make tokens less likely that are there already. 1, 0
            and 0 are off.
        seed: The same seed gives the same text.
        logit_bias: A dict from tokens to numbers that are added to their logits; -inf rules a token out.
        stop: A str, or several, before which the text ends.
        stop_tokens: Tokens that end the text.
        shown_tokens: Control tokens whose spelling becomes part of the text.
        ignore_eos: Go on after the end of the sequence.
        schema: A JSON schema, as a dict or as a str, that the text fits.
        regex: A regular expression that the whole text matches.
        top_logprobs: Fill `logprobs` of the result with so many likeliest tokens at every place.
        origins: Fill `origins` of the result: how each token came into the text.
        prefill_chunk: Tokens of the prompt in a pass. Changes speed and memory only.
        recipe: The recipe to decode with, if not the model's first one.
        priority: Requests of higher priority go first.
        timeout: Seconds after which the text ends with what there is."""


def _with_options(function):
    """Put the list of options into a docstring."""
    if function.__doc__ is not None:  # python -OO leaves docstrings out
        function.__doc__ = function.__doc__.replace("{options}", OPTIONS.lstrip())
    return function


class Score:
    """How likely a model holds a text."""

    __slots__ = ("tokens",)

    def __init__(self, tokens):
        #: A ScoredToken for each token of the text but the first.
        self.tokens = tokens

    @property
    def total(self):
        """The natural logarithm of the text's probability, given its first token."""
        return sum(token.logprob for token in self.tokens)

    @property
    def mean(self):
        """The mean log-probability of a token."""
        return self.total / len(self.tokens)

    @property
    def perplexity(self):
        """The exponential of the negative mean."""
        return math.exp(-self.mean)

    def __repr__(self):
        return f"Score(total={self.total}, tokens={len(self.tokens)})"


class Model:
    """A model that is loaded, for any number of threads.

    Requests of several threads, coroutines and batches share the passes of the model, and no text depends on the
    others. `with Model.load(...) as model:` frees the memory at the end, as `close()` does.
    """

    __slots__ = ("_native", "__weakref__")

    def __init__(self, native):
        if not isinstance(native, _native.Model):
            raise TypeError("a model comes from Model.load(path)")
        self._native = native

    @classmethod
    def load(
        cls,
        path,
        recipe="auto",
        *,
        recipes=(),
        formats=(),
        cache=None,
        draft_model=None,
        threads=0,
        max_batch=8,
        capacity=0,
        cache_bytes=0,
        prompt_cache=True,
        cache_dir=None,
        progress=None,
    ):
        """Open a folder in Hugging Face layout, a .gguf or a .vbt file.

        Args:
            path: The folder or the file.
            recipe: How to decode: a name of recipe_names() or a .toml file. The weights are packed for it.
            recipes: Further recipes that generations will name.
            formats: Formats to pack the weights into, whatever the recipes need.
            cache: How keys and values are stored: "bf16", "f16", "f32", "int8", "hierarchical[:option=value,...]".
            draft_model: The path of the model that recipes with a small model draft with.
            threads: Threads to compute with; 0 takes one for every core.
            max_batch: The most sequences that are evaluated together.
            capacity: The most tokens that a sequence may reach; 0: the model's context.
            cache_bytes: Memory for the keys and values of all sequences; 0: what max_batch sequences take, but at
                most half of what is available.
            prompt_cache: Remember the beginnings of earlier sequences.
            cache_dir: A folder in which they are kept for later processes.
            progress: A function that is told the fraction that is loaded, from 0 to 1.
        """
        arguments = dict(
            recipe=recipe, recipes=recipes, formats=formats, cache=cache, draft_model=draft_model, threads=threads,
            max_batch=max_batch, capacity=capacity, cache_bytes=cache_bytes, prompt_cache=prompt_cache,
            cache_dir=cache_dir, progress=progress)  # fmt: skip
        return cls(_native.Model.load(path, arguments))

    @_with_options
    def generate(self, prompt, *, stream=False, **options):
        """Continue a text.

        Args:
            prompt: A str, or a sequence of tokens.
            stream: Return a Stream, an iterator over the text's pieces, instead of a Result.
        {options}
        """
        answer = self._native.ask("generate", prompt, options, _truth(stream))
        return Stream(answer) if stream else answer.result()

    @_with_options
    async def agenerate(self, prompt, *, stream=False, **options):
        """Continue a text, as generate() does, while other coroutines run.

        Cancelling the coroutine cancels the generation.

        Args:
            prompt: A str, or a sequence of tokens.
            stream: Return an AsyncStream, for `async for`, instead of a Result.
        {options}
        """
        answer = self._native.ask("agenerate", prompt, options, _truth(stream))
        return AsyncStream(answer) if stream else await result_of(answer)

    @_with_options
    def batch(self, prompts, **options):
        """Continue many texts at once and return a list of Results, each with the bytes that generate() gives.

        Args:
            prompts: A sequence whose elements are a str or a sequence of tokens each.
        {options}
        """
        if isinstance(prompts, (str, bytes)):
            raise TypeError(f"prompts: a sequence of prompts is expected, not {type(prompts).__name__}")
        return results_of(self._native.ask_all("batch", list(prompts), options))

    @_with_options
    def chat(self, messages, *, tools=None, stream=False, **options):
        """Reply to the last message of a conversation, as the model's chat template writes it.

        Args:
            messages: Dicts with `role` ("system", "user", "assistant", "tool") and `content`, as OpenAI's interface
                has them.
            tools: Dicts that describe functions, if the model's template knows tools. Calls of them are in the text,
                as the model writes them.
            stream: Return a Stream instead of a Result.
        {options}
        """
        answer = chat_answer(self._native, "chat", messages, tools, options, _truth(stream))
        return Stream(answer) if stream else answer.result()

    @_with_options
    async def achat(self, messages, *, tools=None, stream=False, **options):
        """Reply to a conversation, as chat() does, while other coroutines run.

        Args:
            messages: As for chat().
            tools: As for chat().
            stream: Return an AsyncStream instead of a Result.
        {options}
        """
        answer = chat_answer(self._native, "achat", messages, tools, options, _truth(stream))
        return AsyncStream(answer) if stream else await result_of(answer)

    def conversation(self, system="", *, format=None):
        """Begin a Conversation, which keeps its history.

        Args:
            system: What the model is told before the first message.
            format: "chatml", "llama-3", "llama-2", "mistral" or "plain"; None: the model says.
        """
        return Conversation(self, system, format=format)

    def session(self, *, capacity=0):
        """Begin a Session: one sequence that can be looked at, cut off, saved and restored.

        Args:
            capacity: The most tokens that it may reach; 0: the model's context.
        """
        return Session(self, capacity=capacity)

    def score(self, text, *, top_logprobs=0, reading="full"):
        """Say how likely the model holds a text: a Score.

        Args:
            text: A str, or a sequence of tokens.
            top_logprobs: The number of likeliest tokens to name at every place.
            reading: The reading of the weights, by name.
        """
        return Score(self._native.score(text, top_logprobs, reading))

    def logits(self, text, *, reading="full"):
        """Compute what the model expects after each token of a text.

        Returns a NumPy array of float32 with a row for each token and a column for each token of the vocabulary. It
        is the memory that the numbers were computed into.

        Args:
            text: A str, or a sequence of tokens.
            reading: The reading of the weights, by name.
        """
        return self._native.logits(text, reading)

    def tokenize(self, text, *, add_bos=True):
        """Turn a text into tokens, a list of int, with the token that begins a sequence if the model wants it."""
        return self._native.tokenize(text, _truth(add_bos, "add_bos"))

    def detokenize(self, tokens):
        """Turn tokens into their text; control tokens are left out."""
        return self._native.detokenize(tokens)

    def piece(self, token):
        """Return a token as the vocabulary spells it."""
        return self._native.piece(token)

    def find_token(self, piece):
        """Return the token that the vocabulary spells like this, or None."""
        return self._native.find_token(piece)

    def close(self):
        """Cancel what is being generated and free the memory."""
        self._native.close()

    @property
    def closed(self):
        """Whether close() was called."""
        return self._native.closed

    @property
    def recipe(self):
        """The name of the recipe that generations decode with unless they name another."""
        return self._native.recipe

    @property
    def context(self):
        """The longest sequence that the model can evaluate, in tokens."""
        return self._native.context

    @property
    def vocab_size(self):
        """The number of tokens."""
        return self._native.vocab_size

    @property
    def bos_token(self):
        """The token that begins a sequence, or None."""
        return self._native.bos_token

    @property
    def eos_tokens(self):
        """The tokens that end a sequence."""
        return self._native.eos_tokens

    @property
    def warnings(self):
        """Things about the model's files that deserve attention, a line each."""
        return self._native.warnings

    @property
    def stats(self):
        """What the model's engine does and has done so far: an EngineStats."""
        return self._native.stats()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        if self.closed:
            return "<verbatim.Model, closed>"
        return f"<verbatim.Model, recipe {self.recipe}, {self.vocab_size} tokens, context {self.context}>"


def _truth(value, name="stream"):
    if value is not True and value is not False:
        raise TypeError(f"{name}: True or False is expected, not {type(value).__name__}")
    return value
