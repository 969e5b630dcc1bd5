"""Replies through Python are byte for byte those of `verbatim chat`."""

import asyncio
import json
import tempfile
import unittest
from pathlib import Path

import support
from support import MODEL, run_program

import verbatim

QUESTIONS = ["What is 2 + 3?", "And what is 4 + 5?", "Why?"]
OPTIONS = {"temperature": 0.7, "seed": 3, "max_tokens": 40}
ARGUMENTS = ("--temperature", "0.7", "--seed", "3", "-n", "40")


def said_by_program(questions, *more):
    code, text, said = run_program("chat", MODEL, *ARGUMENTS, *more, stdin="\n".join(questions).encode() + b"\n")
    assert code == 0, said
    return text


def as_program_prints(replies):
    return b"".join(reply.raw if reply.raw.endswith(b"\n") else reply.raw + b"\n" for reply in replies)


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = verbatim.Model.load(MODEL)

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_a_reply_is_that_of_the_program(self):
        reply = self.model.chat([{"role": "user", "content": QUESTIONS[0]}], **OPTIONS)
        self.assertEqual(as_program_prints([reply]), said_by_program(QUESTIONS[:1]))

    def test_a_reply_under_a_system_text_is_that_of_the_program(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTIONS[0]}]
        expected = said_by_program(QUESTIONS[:1], "--system", "Be brief.")
        self.assertEqual(as_program_prints([self.model.chat(messages, **OPTIONS)]), expected)
        self.assertEqual(as_program_prints([self.model.conversation("Be brief.").reply(QUESTIONS[0], **OPTIONS)]), expected)

    def test_a_conversation_is_that_of_the_program(self):
        conversation = self.model.conversation()
        replies = [conversation.reply(question, **OPTIONS) for question in QUESTIONS]
        self.assertEqual(as_program_prints(replies), said_by_program(QUESTIONS))
        roles = [message["role"] for message in conversation.messages]
        self.assertEqual(roles, ["user", "assistant"] * 3)
        self.assertEqual(conversation.messages[3]["content"], replies[1].text)

    def test_streamed_replies_are_the_same(self):
        conversation = self.model.conversation()
        texts = ["".join(conversation.reply(question, stream=True, **OPTIONS)) for question in QUESTIONS[:2]]
        other = self.model.conversation()
        self.assertEqual(texts, [other.reply(question, **OPTIONS).text for question in QUESTIONS[:2]])
        stream = self.model.chat([{"role": "user", "content": QUESTIONS[0]}], stream=True, **OPTIONS)
        self.assertEqual("".join(stream), texts[0])

    def test_coroutines_get_the_same_replies(self):
        messages = [{"role": "user", "content": QUESTIONS[0]}]
        expected = self.model.chat(messages, **OPTIONS).text

        async def ask():
            stream = await self.model.achat(messages, stream=True, **OPTIONS)
            return (await self.model.achat(messages, **OPTIONS)).text, "".join([piece async for piece in stream])

        self.assertEqual(asyncio.run(ask()), (expected, expected))

    def test_a_saved_conversation_goes_on_with_the_same_bytes(self):
        conversation = self.model.conversation("Be brief.")
        for question in QUESTIONS[:2]:
            conversation.reply(question, **OPTIONS)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "talk.json"
            conversation.save(path)
            with self.assertRaisesRegex(verbatim.BadInputError, "exists"):
                conversation.save(path)
            self.assertEqual([file.name for file in Path(folder).iterdir()], ["talk.json"])
            with verbatim.Model.load(MODEL, "plain") as other:
                restored = verbatim.Conversation.restore(other, path)
                self.assertEqual(restored.tokens, conversation.tokens)
                self.assertEqual(restored.messages, conversation.messages)
                again = restored.reply(QUESTIONS[2], **OPTIONS)
        self.assertEqual(again.raw, conversation.reply(QUESTIONS[2], **OPTIONS).raw)

    def test_a_file_that_is_no_conversation_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "talk.json"
            saved = {"verbatim_conversation": 1, "vocab_size": 4096, "system": "", "format": None, "turns": []}
            texts = ["", "[]", "null", "{", "\xff", '{"turns": 3}', json.dumps({**saved, "verbatim_conversation": 9}),
                     json.dumps({**saved, "turns": [3]}), json.dumps({**saved, "vocab_size": 7}),
                     json.dumps({**saved, "turns": 3}), json.dumps({**saved, "turns": [{"message": "a"}]})]  # fmt: skip
            for text in texts:
                with self.subTest(text):
                    path.write_text(text, encoding="latin-1")
                    with self.assertRaisesRegex(verbatim.BadInputError, "talk.json"):
                        verbatim.Conversation.restore(self.model, path)

    def test_a_reply_that_is_dropped_is_no_part_of_the_conversation(self):
        conversation = self.model.conversation()
        stream = conversation.reply(QUESTIONS[0], stream=True, **OPTIONS)
        next(stream)
        del stream
        self.assertEqual(conversation.messages, [])
        conversation.reply(QUESTIONS[1], **OPTIONS)
        self.assertEqual(len(conversation.messages), 2)
        conversation.clear()
        self.assertEqual(conversation.messages, [])

    def test_tools_reach_the_template(self):
        tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
        messages = [{"role": "user", "content": QUESTIONS[0]}]
        with self.model.chat(messages, tools=tools, stream=True, **OPTIONS) as stream:
            next(stream)
        with_tools = self.model.chat(messages, tools=tools, max_tokens=1)
        without = self.model.chat(messages, max_tokens=1)
        self.assertGreater(with_tools.stats.prompt_tokens, without.stats.prompt_tokens)
        called = [*messages, {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "add", "arguments": {"a": 2}}}]},
            {"role": "tool", "content": "5", "tool_call_id": "1"}]  # fmt: skip
        self.assertEqual(len(self.model.chat(called, tools=tools, max_tokens=3).tokens), 3)

    def test_messages_that_are_none_are_refused(self):
        for messages, line in [
            ([], "no message"),
            ([{"role": "nobody", "content": "x"}], "role 'nobody'"),
            ([{"role": "user", "text": "x"}], '"text"'),
            ([{"content": "x"}], "role None"),
        ]:
            with self.subTest(messages), self.assertRaisesRegex(verbatim.UsageError, line):
                self.model.chat(messages)
        for messages in ("x", ["x"], [{"role": "user", "content": 3}], [{"role": "user", "content": None}], 3):
            with self.subTest(messages), self.assertRaises(TypeError):
                self.model.chat(messages)
        with self.assertRaises(verbatim.UsageError):
            self.model.conversation(format="nothing")


if __name__ == "__main__":
    support.main()
