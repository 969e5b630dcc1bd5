"""Texts through Python are byte for byte those of the program."""

import asyncio
import json
import math
import tempfile
import unittest

import support
from support import MODEL, PATIENCE, PATIENT_CAPACITY, PROMPTS, generated, patient_model, wait_until

import verbatim

SAMPLED = {"temperature": 0.8, "seed": 7, "max_tokens": 24}
SAMPLED_ARGUMENTS = ("--temperature", "0.8", "--seed", "7", "-n", "24")


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = verbatim.Model.load(MODEL)
        cls.expected = [generated(prompt, *SAMPLED_ARGUMENTS) for prompt in PROMPTS]

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_a_text_is_that_of_the_program(self):
        for prompt, expected in zip(PROMPTS, self.expected):
            result = self.model.generate(prompt, **SAMPLED)
            self.assertEqual(result.raw, expected)
            self.assertEqual(result.text, expected.decode())
            self.assertEqual(str(result), result.text)

    def test_a_text_is_that_of_the_program_with_every_recipe(self):
        for recipe in ("plain", "ml-specqd", "nested", "ngram"):
            with self.subTest(recipe), verbatim.Model.load(MODEL, recipe) as model:
                result = model.generate(PROMPTS[0], **SAMPLED)
                self.assertEqual(result.raw, generated(PROMPTS[0], "--recipe", recipe, *SAMPLED_ARGUMENTS))
                self.assertEqual(result.raw, self.expected[0])
                self.assertEqual(result.stats.recipe, recipe)
                self.assertTrue(result.stats.lossless)

    def test_every_setting_means_what_it_means_to_the_program(self):
        settings = [
            ({"temperature": 1.1, "top_k": 5}, ["--temperature", "1.1", "--top-k", "5"]),
            ({"temperature": 1.1, "top_p": 0.6}, ["--temperature", "1.1", "--top-p", "0.6"]),
            ({"temperature": 1.1, "min_p": 0.2}, ["--temperature", "1.1", "--min-p", "0.2"]),
            ({"repetition_penalty": 1.5}, ["--repetition-penalty", "1.5"]),
            ({"presence_penalty": 2.5}, ["--presence-penalty", "2.5"]),
            ({"frequency_penalty": 1.5}, ["--frequency-penalty", "1.5"]),
            ({"stop": "\n"}, ["--stop", "\n"]),
            ({"stop": ["(", "):"]}, ["--stop", "(", "--stop", "):"]),
            ({"ignore_eos": True}, ["--ignore-eos"]),
            ({"prefill_chunk": 1}, ["--prefill-chunk", "1"]),
            ({"schema": {"type": "object", "properties": {"a": {"type": "integer"}}}},
             ["--schema", '{"type": "object", "properties": {"a": {"type": "integer"}}}']),
        ]  # fmt: skip
        for options, arguments in settings:
            with self.subTest(options):
                result = self.model.generate(PROMPTS[0], max_tokens=16, **options)
                self.assertEqual(result.raw, generated(PROMPTS[0], "-n", "16", *arguments))

    def test_a_stream_has_the_pieces_of_the_same_text(self):
        for prompt, expected in zip(PROMPTS, self.expected):
            stream = self.model.generate(prompt, stream=True, **SAMPLED)
            pieces = list(stream)
            self.assertGreater(len(pieces), 1)
            self.assertEqual("".join(pieces).encode(), expected)
            self.assertEqual(stream.result().raw, expected)
            self.assertTrue(stream.done)
            self.assertEqual(list(stream), [])

    def test_a_stream_that_is_left_is_cancelled(self):
        with tempfile.TemporaryDirectory() as folder:
            model = verbatim.Model.load(patient_model(folder), "plain", capacity=PATIENT_CAPACITY)
        with model, model.generate(PROMPTS[0], stream=True, **PATIENCE) as stream:
            next(stream)
        self.assertEqual(stream.result().finish_reason, "cancelled")
        self.assertLess(len(stream.result().tokens), PATIENCE["max_tokens"])

    def test_a_batch_gives_the_texts_of_single_prompts(self):
        results = self.model.batch(PROMPTS * 3, **SAMPLED)
        self.assertEqual([result.raw for result in results], self.expected * 3)
        self.assertEqual(self.model.batch([]), [])

    def test_coroutines_get_the_same_texts(self):
        async def ask():
            return await asyncio.gather(*(self.model.agenerate(prompt, **SAMPLED) for prompt in PROMPTS * 2))

        self.assertEqual([result.raw for result in asyncio.run(ask())], self.expected * 2)

    def test_coroutines_stream_the_same_texts(self):
        async def read(prompt):
            async with await self.model.agenerate(prompt, stream=True, **SAMPLED) as stream:
                text = "".join([piece async for piece in stream])
                self.assertEqual((await stream.result()).text, text)
                return text.encode()

        async def read_all():
            return await asyncio.gather(*map(read, PROMPTS))

        self.assertEqual(asyncio.run(read_all()), self.expected)

    def test_a_cancelled_coroutine_cancels_the_generation(self):
        async def ask(model):
            task = asyncio.create_task(model.agenerate(PROMPTS[0], **PATIENCE))
            await asyncio.to_thread(wait_until, lambda: model.stats.running == 1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(wait_until, lambda: model.stats.running == 0)
            self.assertEqual(model.stats.finished, 1)
            self.assertLess(model.stats.whole_model.count, PATIENCE["max_tokens"])

        with tempfile.TemporaryDirectory() as folder:
            model = verbatim.Model.load(patient_model(folder), "plain", capacity=PATIENT_CAPACITY)
        with model:
            asyncio.run(ask(model))

    def test_coroutines_may_wait_for_one_answer(self):
        async def ask():
            stream = await self.model.agenerate(PROMPTS[0], stream=True, **SAMPLED)

            async def read():
                return "".join([piece async for piece in stream])

            waits = asyncio.gather(stream.result(), read(), stream.result(), stream.result())
            return await asyncio.wait_for(waits, 300)

        first, text, *others = asyncio.run(ask())
        self.assertEqual(text.encode(), self.expected[0])
        self.assertEqual([result.raw for result in (first, *others)], self.expected[:1] * 3)

    def test_a_prompt_may_be_tokens(self):
        tokens = self.model.tokenize(PROMPTS[0])
        self.assertEqual(self.model.generate(tokens, **SAMPLED).raw, self.expected[0])
        self.assertEqual(self.model.generate(tuple(tokens), **SAMPLED).raw, self.expected[0])

    def test_tokens_make_the_text_again(self):
        tokens = self.model.tokenize(PROMPTS[3])
        self.assertEqual(self.model.detokenize(tokens), PROMPTS[3])
        self.assertEqual([self.model.find_token(self.model.piece(token)) for token in tokens], tokens)
        self.assertEqual(tokens[0] == self.model.bos_token, tokens != self.model.tokenize(PROMPTS[3], add_bos=False))

    def test_statistics_have_the_names_and_numbers_of_the_program(self):
        code, text, said = support.run_program("generate", MODEL, "-p", PROMPTS[0], "-n", "24", "--recipe", "ml-specqd",
                                               "--json")  # fmt: skip
        self.assertEqual(code, 0, said)
        program = json.loads(text)
        with verbatim.Model.load(MODEL, "ml-specqd", prompt_cache=False) as model:
            stats = model.generate(PROMPTS[0], max_tokens=24).stats
        for name in ("drafted", "accepted", "acceptance_rate", "mean_accepted_length", "target_passes", "draft_passes",
                     "prompt_tokens", "generated_tokens", "finish_reason", "recipe", "lossless", "guarantee",
                     "fallbacks", "rollbacks", "lengths", "depths"):  # fmt: skip
            self.assertEqual(getattr(stats, name), program[name], name)
            self.assertEqual(stats.as_dict()[name], program[name], name)
        self.assertGreater(stats.seconds, 0)
        self.assertEqual(stats.passes, stats.target_passes + stats.draft_passes)

    def test_logprobs_and_origins_come_when_asked_for(self):
        plain = self.model.generate(PROMPTS[0], max_tokens=8)
        self.assertEqual((plain.logprobs, plain.origins), ([], []))
        result = self.model.generate(PROMPTS[0], max_tokens=8, top_logprobs=2, origins=True)
        self.assertEqual([scored.token for scored in result.logprobs], result.tokens)
        for scored in result.logprobs:
            self.assertEqual(scored.top[0], (scored.token, scored.logprob))
            self.assertEqual(len(scored.top), 2)
        self.assertEqual(len(result.origins), 8)
        self.assertLessEqual({origin.kind for origin in result.origins}, {"plain", "drafted", "corrected"})

    def test_a_regular_expression_holds_the_text(self):
        result = self.model.generate("A number: ", regex="[0-9]{3}-[0-9]{2}", max_tokens=40)
        self.assertRegex(result.text, "^[0-9]{3}-[0-9]{2}$")

    def test_a_bias_rules_a_token_out(self):
        first = self.model.generate(PROMPTS[0], max_tokens=1).tokens[0]
        other = self.model.generate(PROMPTS[0], max_tokens=1, logit_bias={first: -math.inf}).tokens[0]
        self.assertNotEqual(first, other)

    def test_a_timeout_ends_the_text(self):
        self.assertEqual(self.model.generate(PROMPTS[0], max_tokens=900, timeout=0).finish_reason, "deadline")

    def test_another_recipe_can_be_named(self):
        with verbatim.Model.load(MODEL, "plain", recipes=["ngram"]) as model:
            self.assertEqual(model.generate("import os", max_tokens=4).stats.recipe, "plain")
            result = model.generate(PROMPTS[0], recipe="ngram", **SAMPLED)
            self.assertEqual(result.stats.recipe, "ngram")
            self.assertEqual(result.raw, self.expected[0])

    def test_portable_kernels_give_the_portable_text_of_the_program(self):
        code = """
import sys, verbatim
verbatim.use_portable_kernels()
model = verbatim.Model.load(sys.argv[1], "plain")
sys.stdout.buffer.write(model.generate(sys.argv[2], max_tokens=24).raw)
"""
        done = support.run_python(code, MODEL, PROMPTS[0])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.encode(), generated(PROMPTS[0], "-n", "24", "--recipe", "plain", "--portable"))

    def test_loading_says_how_far_it_is(self):
        told = []
        verbatim.Model.load(MODEL, progress=told.append).close()
        self.assertEqual(told, sorted(told))
        self.assertEqual(told[-1], 1.0)

    def test_what_a_function_that_is_told_throws_ends_the_loading(self):
        def refuse(fraction):
            raise KeyError("enough")

        with self.assertRaisesRegex(KeyError, "enough"):
            verbatim.Model.load(MODEL, progress=refuse)


if __name__ == "__main__":
    support.main()
