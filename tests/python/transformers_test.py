"""generate() with the argument names of transformers does what Model.generate() does."""

import unittest

import support
from support import MODEL, PROMPTS, needs_numpy

import verbatim
from verbatim.transformers import generate


class Transformers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = verbatim.Model.load(MODEL, "plain")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def same(self, theirs, ours, prompt=PROMPTS[0]):
        self.assertEqual(generate(self.model, prompt, **theirs)[0].raw, self.model.generate(prompt, **ours).raw)

    def test_arguments_are_translated(self):
        sampled = {"do_sample": True, "seed": 5, "max_new_tokens": 20}
        ours = {"temperature": 1.0, "top_k": 50, "seed": 5, "max_tokens": 20}
        self.same({}, {"max_tokens": 20})
        self.same({"max_new_tokens": 7}, {"max_tokens": 7})
        self.same(sampled, ours)
        self.same({**sampled, "temperature": 0.6}, {**ours, "temperature": 0.6})
        self.same({**sampled, "top_k": 3}, {**ours, "top_k": 3})
        self.same({**sampled, "top_p": 0.5}, {**ours, "top_p": 0.5})
        self.same({**sampled, "min_p": 0.3}, {**ours, "min_p": 0.3})
        self.same({"repetition_penalty": 1.4}, {"repetition_penalty": 1.4, "max_tokens": 20})
        self.same({"stop_strings": ["\n    "]}, {"stop": ["\n    "], "max_tokens": 20})
        newline = self.model.generate(PROMPTS[0], max_tokens=1).tokens[0]
        self.same({"eos_token_id": newline}, {"stop_tokens": [newline], "max_tokens": 20})
        self.same({"eos_token_id": [newline]}, {"stop_tokens": [newline], "max_tokens": 20})
        self.same({"suppress_tokens": [newline]}, {"logit_bias": {newline: float("-inf")}, "max_tokens": 20})
        self.same({"sequence_bias": {(newline,): -3.0}}, {"logit_bias": {newline: -3.0}, "max_tokens": 20})
        self.same({"max_time": 0}, {"timeout": 0})
        self.same({"recipe": "plain"}, {"max_tokens": 20})

    def test_max_length_counts_the_prompt(self):
        tokens = self.model.tokenize(PROMPTS[0])
        short, long = generate(self.model, [PROMPTS[1], tokens], max_length=len(tokens) + 4)
        self.assertEqual(len(long.tokens), 4)
        self.assertEqual(len(short.tokens), len(tokens) + 4 - len(self.model.tokenize(PROMPTS[1])))
        with self.assertRaisesRegex(verbatim.UsageError, "leaves no room"):
            generate(self.model, PROMPTS[0], max_length=len(tokens))

    @needs_numpy
    def test_inputs_may_be_texts_tokens_and_arrays(self):
        import numpy

        expected = [result.raw for result in self.model.batch(PROMPTS[:1] * 2, max_tokens=20)]
        tokens = self.model.tokenize(PROMPTS[0])
        for inputs in (PROMPTS[0], tokens, numpy.array(tokens), numpy.array([tokens])):
            self.assertEqual([result.raw for result in generate(self.model, inputs)], expected[:1])
        for inputs in (PROMPTS[:1] * 2, [tokens, tokens], [numpy.array(tokens)] * 2, numpy.array([tokens, tokens])):
            self.assertEqual([result.raw for result in generate(self.model, inputs)], expected)

    def test_what_there_is_not_is_an_error(self):
        for name in ("num_beam_groups", "penalty_alpha", "use_cache", "max_tokens", "bad_words_ids"):
            with self.subTest(name), self.assertRaisesRegex(TypeError, name):
                generate(self.model, "x", **{name: 1})
        for options, line in [
            ({"temperature": 0.5}, "do_sample"),
            ({"top_k": 5}, "do_sample"),
            ({"num_beams": 2}, "num_beams"),
            ({"num_return_sequences": 2}, "num_return_sequences"),
            ({"max_new_tokens": 3, "max_length": 9}, "give one"),
            ({"sequence_bias": {(1, 2): 1.0}}, "one token"),
            ({"do_sample": True, "temperature": float("nan")}, "temperature is nan"),
        ]:
            with self.subTest(options), self.assertRaisesRegex(verbatim.UsageError, line):
                generate(self.model, "x", **options)
        with self.assertRaises(TypeError):
            generate(self.model, 3)


if __name__ == "__main__":
    support.main()
