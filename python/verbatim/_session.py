"""Sessions: single sequences that their owner steers."""

from verbatim import _native
from verbatim._conversation import Conversation


class Session:
    """One sequence of tokens with its keys and values, which can be looked at, cut off, saved and restored.

    It is computed on the thread that calls, beside the model's own engine, by one thread at a time. `with
    model.session() as session:` frees its memory at the end, as `close()` does.
    """

    __slots__ = ("_native",)

    def __init__(self, model, *, capacity=0):
        self._native = _native.Session(model._native, capacity)

    def generate(self, prompt, *, on_text=None, **options):
        """Append a prompt to the sequence, continue it, and return a Result.

        What the call raises, Ctrl-C among it, leaves the sequence as it was before.

        Args:
            prompt: A str, or a sequence of tokens. The token that begins a sequence comes before a str if the session
                has no tokens yet.
            on_text: A function that is told each piece of the text as it becomes final.
            **options: As for Model.generate(), without priority and timeout.
        """
        return self._native.generate(prompt, options, on_text)

    def reply(self, conversation, message, *, on_text=None, **options):
        """Say something in a Conversation, and return the model's reply, computed in this session.

        The session keeps what it has of the conversation's tokens and forgets the rest. The message and the reply
        become part of the conversation.

        Args:
            conversation: A Conversation with the same model.
            message: What to say.
            on_text: A function that is told each piece of the reply as it becomes final.
            **options: As for Model.generate(), without priority and timeout; max_tokens is 512 unless given.
        """
        if not isinstance(conversation, Conversation):
            raise TypeError(f"conversation: a Conversation is expected, not {type(conversation).__name__}")
        return conversation._reply_in(self._native, message, on_text, options)

    def cancel(self):
        """Let what is being generated end before the next pass of the model. Any thread may call this."""
        self._native.cancel()

    def truncate(self, length):
        """Forget the tokens from `length` on, so that the next prompt continues from there."""
        self._native.truncate(length)

    @property
    def tokens(self):
        """Every token so far: prompts and what was generated."""
        return self._native.tokens

    @property
    def evaluated(self):
        """The number of tokens at the beginning that the next call need not evaluate."""
        return self._native.evaluated

    def save(self, path):
        """Write tokens, keys and values to a new file, for this model on this kind of machine."""
        self._native.save(path)

    def restore(self, path):
        """Make this the sequence that save() wrote: the next call goes on with the same bytes."""
        self._native.restore(path)

    def close(self):
        """Free the memory."""
        self._native.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
