"""A session is one sequence that goes on where it ends, and can be cut off, saved and restored."""

import tempfile
import threading
import unittest
from pathlib import Path

import support
from support import MODEL, PATIENCE, PATIENT_CAPACITY, PROMPTS, REPOSITORY, generated, patient_model, run_python

import verbatim

OPTIONS = {"temperature": 0.8, "seed": 5, "max_tokens": 24}
QUESTIONS = ["What is 2 + 3?", "And what is 4 + 5?", "Why?"]


class Sessions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = verbatim.Model.load(MODEL, "plain", recipes=["ngram"])
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.model.close()
        cls.folder.cleanup()

    def path(self, name):
        return Path(self.folder.name) / name

    def test_a_text_has_the_bytes_of_the_program(self):
        expected = generated(PROMPTS[0], "--temperature", "0.8", "--seed", "5", "-n", "24")
        for recipe in ("plain", "ngram"):
            with self.model.session() as session:
                pieces = []
                result = session.generate(PROMPTS[0], recipe=recipe, on_text=pieces.append, **OPTIONS)
                self.assertEqual(result.raw, expected)
                self.assertEqual("".join(pieces), result.text)
                self.assertEqual(result.stats.recipe, recipe)
                self.assertEqual(session.tokens, self.model.tokenize(PROMPTS[0]) + result.tokens)

    def test_the_next_prompt_goes_on_where_the_sequence_ends(self):
        session = self.model.session()
        session.generate(PROMPTS[0], **OPTIONS)
        before = session.tokens
        more = self.model.tokenize(PROMPTS[1], add_bos=False)
        result = session.generate(PROMPTS[1], **OPTIONS)
        self.assertEqual(session.tokens, before + more + result.tokens)
        self.assertEqual(result.raw, self.model.generate(before + more, **OPTIONS).raw)
        # Only the new tokens and the last one of the sequence were evaluated.
        self.assertLessEqual(result.stats.prompt_tokens, len(more) + 1)

    def test_a_sequence_that_was_cut_off_is_as_if_the_rest_had_never_been(self):
        session = self.model.session()
        first = session.generate(PROMPTS[0], **OPTIONS)
        length = len(session.tokens)
        session.generate(PROMPTS[1], **OPTIONS)
        session.truncate(length)
        self.assertEqual(session.tokens, self.model.tokenize(PROMPTS[0]) + first.tokens)
        result = session.generate(PROMPTS[2], **OPTIONS)
        other = self.model.session()
        other.generate(PROMPTS[0], **OPTIONS)
        self.assertEqual(result.raw, other.generate(PROMPTS[2], **OPTIONS).raw)

    def test_a_session_that_was_saved_goes_on_with_the_same_bytes_and_evaluates_nothing_again(self):
        session = self.model.session()
        session.generate(PROMPTS[0], **OPTIONS)
        path = self.path("whole.session")
        session.save(path)
        with self.assertRaisesRegex(verbatim.BadInputError, "whole.session"):
            session.save(path)
        code = """
import sys, verbatim
model = verbatim.Model.load(sys.argv[1], "plain")
session = model.session()
session.restore(sys.argv[2])
print(session.evaluated >= len(session.tokens) - 1)
result = session.generate([5, 6, 7], temperature=0.8, seed=5, max_tokens=24)
print(result.tokens, result.stats.prompt_tokens)
"""
        done = run_python(code, MODEL, path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        here = session.generate([5, 6, 7], **OPTIONS)
        self.assertEqual(done.stdout, f"True\n{here.tokens} {here.stats.prompt_tokens}\n")

    def test_a_file_that_is_no_session_is_refused_and_changes_nothing(self):
        session = self.model.session()
        session.generate(PROMPTS[0], **OPTIONS)
        before = session.tokens
        session.save(self.path("good.session"))
        damaged = bytearray(self.path("good.session").read_bytes())
        damaged[len(damaged) // 2] ^= 1
        self.path("bad.session").write_bytes(damaged)
        self.path("empty.session").write_bytes(b"")
        for path in (self.path("bad.session"), self.path("empty.session"), self.path("none.session"), MODEL):
            with self.subTest(path), self.assertRaises(verbatim.BadInputError):
                session.restore(path)
        self.assertEqual(session.tokens, before)
        with self.model.session(capacity=5) as small, self.assertRaisesRegex(verbatim.BadInputError, "room for 5"):
            small.restore(self.path("good.session"))

    def test_a_reply_is_that_of_the_conversation_also_after_both_were_restored(self):
        expected = self.model.conversation("Be brief.")
        texts = [expected.reply(question, **OPTIONS).raw for question in QUESTIONS]
        conversation = self.model.conversation("Be brief.")
        session = self.model.session()
        replies = [session.reply(conversation, question, **OPTIONS).raw for question in QUESTIONS[:2]]
        conversation.save(self.path("talk.json"))
        session.save(self.path("talk.session"))
        conversation = verbatim.Conversation.restore(self.model, self.path("talk.json"))
        session = self.model.session()
        session.restore(self.path("talk.session"))
        known = session.evaluated
        result = session.reply(conversation, QUESTIONS[2], **OPTIONS)
        self.assertEqual([*replies, result.raw], texts)
        self.assertEqual(conversation.messages, expected.messages)
        self.assertLessEqual(result.stats.prompt_tokens, len(conversation.tokens) - known)
        self.assertGreater(known, result.stats.prompt_tokens)

    def test_another_model_drafts(self):
        draft = REPOSITORY / "models" / "draft"
        with verbatim.Model.load(MODEL, "draft-model", draft_model=draft) as model, model.session() as session:
            result = session.generate(PROMPTS[0], **OPTIONS)
            self.assertEqual(result.raw, self.model.generate(PROMPTS[0], **OPTIONS).raw)
            self.assertGreater(result.stats.drafted, 0)

    def test_a_function_that_throws_leaves_the_sequence_as_it_was(self):
        session = self.model.session()
        session.generate(PROMPTS[0], **OPTIONS)
        before = session.tokens

        def refuse(text):
            raise LookupError(text)

        with self.assertRaises(LookupError):
            session.generate(PROMPTS[1], on_text=refuse, **OPTIONS)
        self.assertEqual(session.tokens, before)
        conversation = self.model.conversation()
        with self.assertRaises(LookupError):
            session.reply(conversation, QUESTIONS[0], on_text=refuse, **OPTIONS)
        self.assertEqual(conversation.messages, [])

    def test_cancelling_ends_a_text_with_what_there_is(self):
        session = self.model.session()
        pieces = []

        def enough(text):
            pieces.append(text)
            session.cancel()

        result = session.generate(PROMPTS[0], on_text=enough, max_tokens=200, ignore_eos=True)
        self.assertEqual((result.finish_reason, "".join(pieces)), ("cancelled", result.text))
        self.assertLess(len(result.tokens), 200)
        self.assertEqual(session.generate([5], max_tokens=3, ignore_eos=True).finish_reason, "length")

    def test_another_call_meanwhile_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            model = verbatim.Model.load(patient_model(folder), "plain")
        session = model.session(capacity=PATIENT_CAPACITY)
        begun = threading.Event()
        results = []

        def work():
            results.append(session.generate("x", on_text=lambda _: begun.set(), **PATIENCE))

        thread = threading.Thread(target=work)
        thread.start()
        try:
            self.assertTrue(begun.wait(300))
            for call in (lambda: session.tokens, lambda: session.evaluated, lambda: session.truncate(0), session.close,
                         lambda: session.generate("x"), lambda: session.save(self.path("used.session"))):  # fmt: skip
                with self.assertRaisesRegex(verbatim.UsageError, "being used by another call"):
                    call()
        finally:
            session.cancel()
            thread.join()
        self.assertEqual(results[0].finish_reason, "cancelled")
        with self.assertRaisesRegex(verbatim.UsageError, "being used by another call"):
            session.generate("x", on_text=lambda _: session.generate("x"), max_tokens=3, ignore_eos=True)
        model.close()

    def test_what_is_closed_refuses_everything(self):
        conversation = self.model.conversation()
        session = self.model.session()
        session.close()
        session.close()
        model = verbatim.Model.load(MODEL, "plain")
        orphan = model.session()
        model.close()
        for each, line in ((session, "the session is closed"), (orphan, "the model is closed")):
            for call in (lambda: each.generate("x"), lambda: each.tokens, lambda: each.evaluated, lambda: each.truncate(0),
                         lambda: each.save(self.path("closed.session")), lambda: each.restore(MODEL)):  # fmt: skip
                with self.assertRaisesRegex(verbatim.UsageError, line):
                    call()
        with self.assertRaisesRegex(verbatim.UsageError, "the session is closed"):
            session.reply(conversation, "x")
        with self.assertRaisesRegex(verbatim.UsageError, "another model"):
            orphan.reply(conversation, "x")
        with self.assertRaisesRegex(verbatim.UsageError, "the model is closed"):
            model.session()

    def test_wrong_arguments_are_refused(self):
        session = self.model.session()
        for call in (
            lambda: session.generate(3), lambda: session.generate("x", on_text=3), lambda: session.generate("x", stop=3),
            lambda: session.truncate("x"), lambda: session.truncate(1.5), lambda: session.save(3),
            lambda: session.restore(None), lambda: session.reply("x", "y"), lambda: self.model.session(capacity="x"),
            lambda: session.reply(self.model.conversation(), 3), lambda: verbatim.Session(self.model, 3),
        ):  # fmt: skip
            with self.assertRaises(TypeError):
                call()
        for name in ("priority", "timeout", "max_token", "stream"):
            with self.assertRaisesRegex(TypeError, rf"generate\(\) got an unexpected keyword argument '{name}'"):
                session.generate("x", **{name: 3})
        for call in (
            lambda: session.truncate(-1), lambda: self.model.session(capacity=-1),
            lambda: session.generate("x", temperature=float("nan")), lambda: session.generate("x", recipe="nothing"),
        ):  # fmt: skip
            with self.assertRaises(verbatim.UsageError):
                call()
        with self.model.session(capacity=10) as small, self.assertRaises(verbatim.BadInputError):
            small.generate([5] * 11)
        self.assertEqual(session.tokens, [])

    def test_a_forked_process_is_told_to_make_a_session_of_its_own(self):
        code = """
import os, sys, verbatim
model = verbatim.Model.load(sys.argv[1], "plain")
session = model.session()
child = os.fork()
if child == 0:
    for call in (lambda: session.generate("x"), lambda: session.tokens, session.close):
        try:
            call()
        except verbatim.UsageError as error:
            print(error, flush=True)
    del session
    sys.exit(0)
print(os.waitpid(child, 0)[1], len(session.generate("x", max_tokens=2, ignore_eos=True).tokens))
"""
        done = run_python(code, MODEL)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        line = "the model was loaded before this process was forked: [^\n]*\n"
        self.assertRegex(done.stdout, f"^({line}){{3}}0 2\n$")


if __name__ == "__main__":
    support.main()
