"""Conversations: histories of messages and replies."""

from verbatim import _native
from verbatim._streams import Stream

# What a message may say; anything else is refused, as nothing would come of it.
_FIELDS = frozenset(("role", "content", "name", "tool_calls", "tool_call_id"))
_ROLES = ("system", "user", "assistant", "tool")

# The form of saved conversations.
_VERSION = 1


def _checked(messages):
    """Return messages as a list after saying what is wrong with them."""
    if isinstance(messages, (str, bytes, dict)):
        raise TypeError(f"messages: a sequence of dicts is expected, not {type(messages).__name__}")
    checked = list(messages)
    if not checked:
        raise _native.UsageError("the conversation has no message: give it one")
    for place, message in enumerate(checked, 1):
        if not isinstance(message, dict):
            raise TypeError(f"message {place}: a dict is expected, not {type(message).__name__}")
        unknown = sorted(str(key) for key in message if key not in _FIELDS)
        if unknown:
            raise _native.UsageError(f"message {place} has \"{unknown[0]}\"; known are {', '.join(sorted(_FIELDS))}")
        if message.get("role") not in _ROLES:
            raise _native.UsageError(
                f"message {place} has the role {message.get('role')!r}; known are {', '.join(_ROLES)}")
        content = message.get("content")
        if not isinstance(content, str) and not (content is None and message.get("tool_calls")):
            raise TypeError(f"message {place}: a str is expected as content, not {type(content).__name__}")
    return checked


def _is_plain(messages):
    """Whether messages and replies take turns, after a system text if there is one, as in `verbatim chat`."""
    turns = messages[1:] if messages[0]["role"] == "system" else messages
    roles = [message["role"] for message in turns]
    expected = ["assistant" if place % 2 else "user" for place in range(len(roles))]
    return len(roles) % 2 == 1 and roles == expected and all(set(m) == {"role", "content"} for m in messages)


def chat_answer(model, function, messages, tools, options, pieces):
    """Ask for the reply to a conversation."""
    messages = _checked(messages)
    options = {"max_tokens": 512, **options}
    if not tools and _is_plain(messages):
        system = messages.pop(0)["content"] if messages[0]["role"] == "system" else ""
        talk = _native.Talk(model, system, None)
        for message in messages:
            talk = (talk.with_message if message["role"] == "user" else talk.with_text)(message["content"])
        return talk.ask(function, options, pieces)
    import json  # only conversations with tools need it

    variables = {
        "messages": [{**message, "content": message.get("content") or ""} for message in messages],
        "add_generation_prompt": True,
    }
    if tools:
        variables["tools"] = list(tools)
    return _native.ask_template(model, function, json.dumps(variables), bool(tools), options, pieces)


class Conversation:
    """A conversation with a model, which keeps what was said, token for token.

    The engine remembers it, so that a message costs its own tokens alone. One thread talks at a time.
    """

    __slots__ = ("_format", "_model", "_system", "_talk", "_turns")

    def __init__(self, model, system="", *, format=None):
        self._model = model
        self._system = system
        self._format = format
        self._turns = []
        self._talk = _native.Talk(model._native, system, format)

    def reply(self, message, *, stream=False, **options):
        """Say something to the model, and return its reply.

        The message and the reply become part of the conversation when the reply is complete; a streamed one when it
        was read to its end or `result()` was called.

        Args:
            message: What to say.
            stream: Return a Stream instead of a Result.
            **options: As for Model.generate(); max_tokens is 512 unless given.
        """
        if stream is not True and stream is not False:
            raise TypeError(f"stream: True or False is expected, not {type(stream).__name__}")
        before = self._talk
        asked = before.with_message(message)

        def add(result):
            if self._talk is not before:
                raise _native.UsageError("the conversation went on while this reply was read: it is no part of it")
            self._add(asked, message, result.raw, result.tokens, result.finish_reason)

        answer = Stream(asked.ask("reply", {"max_tokens": 512, **options}, stream), add)
        return answer if stream else answer.result()

    def _reply_in(self, session, message, on_text, options):
        """Reply to a message in a native session, for Session.reply()."""
        before = self._talk
        asked = before.with_message(message)
        result = session.reply(asked, {"max_tokens": 512, **options}, on_text)
        if self._talk is not before:
            raise _native.UsageError("the conversation went on while this reply was computed: it is no part of it")
        self._add(asked, message, result.raw, result.tokens, result.finish_reason)
        return result

    def _add(self, asked, message, raw, tokens, finish_reason):
        self._talk = asked.with_reply(raw, tokens, finish_reason)
        self._turns.append({
            "message": message, "reply": raw.decode("utf-8", "surrogateescape"), "tokens": tokens,
            "finish_reason": finish_reason,
        })  # fmt: skip

    @property
    def messages(self):
        """The messages so far, as Model.chat() takes them."""
        return self._talk.messages

    @property
    def tokens(self):
        """The tokens of the conversation so far, as the model sees it."""
        return self._talk.tokens

    def clear(self):
        """Begin anew, with the same system text."""
        self._talk = _native.Talk(self._model._native, self._system, self._format)
        self._turns = []

    def save(self, path):
        """Write the conversation to a new file, from which restore() continues it with the same bytes."""
        import json
        import os

        content = {
            "verbatim_conversation": _VERSION, "vocab_size": self._model.vocab_size, "system": self._system,
            "format": self._format, "turns": self._turns,
        }  # fmt: skip
        text = json.dumps(content, indent=1)
        # Whole or not at all, and never over a file that is there.
        whole = f"{os.fspath(path)}.{os.getpid()}.tmp"
        with open(whole, "x", encoding="ascii") as file:
            file.write(text + "\n")
        try:
            os.link(whole, path)
        except FileExistsError:
            raise _native.BadInputError(f"{os.fspath(path)} exists; a conversation is saved to a new file") from None
        finally:
            os.unlink(whole)

    @classmethod
    def restore(cls, model, path):
        """Read a conversation that save() wrote. It is for the model that it was held with."""
        import json

        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            if content["verbatim_conversation"] != _VERSION:
                raise ValueError("it has another version")
            turns = [(t["message"], t["reply"].encode("utf-8", "surrogateescape"), t["tokens"], t["finish_reason"])
                     for t in content["turns"]]  # fmt: skip
            vocab_size, system, form = content["vocab_size"], content["system"], content["format"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _native.BadInputError(f"{path}: this is no conversation that was saved ({error})") from None
        if vocab_size != model.vocab_size:
            raise _native.BadInputError(
                f"{path}: the conversation is with a model of {vocab_size} tokens, not of {model.vocab_size}")
        conversation = cls(model, system, format=form)
        for message, reply, tokens, finish_reason in turns:
            asked = conversation._talk.with_message(message)
            conversation._add(asked, message, reply, tokens, finish_reason)
        return conversation
