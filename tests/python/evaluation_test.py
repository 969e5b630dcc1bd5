"""Scores and logits are those of the program."""

import unittest

import support
from support import MODEL, PROMPTS, needs_numpy, run_program

import verbatim


class Evaluation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = verbatim.Model.load(MODEL, "plain")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    @needs_numpy
    def test_logits_are_an_array_that_nobody_copied(self):
        import numpy

        tokens = self.model.tokenize(PROMPTS[2])
        logits = self.model.logits(PROMPTS[2])
        self.assertEqual(logits.shape, (len(tokens), self.model.vocab_size))
        self.assertEqual(logits.dtype, numpy.float32)
        self.assertTrue(logits.flags.c_contiguous and logits.flags.writeable)
        self.assertFalse(logits.flags.owndata)  # its memory is that which was computed into
        self.assertEqual(type(logits.base).__name__, "PyCapsule")
        self.assertTrue((self.model.logits(tokens) == logits).all())

    @needs_numpy
    def test_the_largest_logit_is_the_token_that_is_generated(self):
        for prompt in PROMPTS:
            logits = self.model.logits(prompt)
            self.assertEqual(int(logits[-1].argmax()), self.model.generate(prompt, max_tokens=1).tokens[0])

    @needs_numpy
    def test_scores_are_those_of_logits(self):
        import numpy

        tokens = self.model.tokenize(PROMPTS[2])
        logits = self.model.logits(tokens).astype(numpy.float64)[:-1]
        logprobs = logits - numpy.log(numpy.exp(logits).sum(axis=1, keepdims=True))
        score = self.model.score(PROMPTS[2], top_logprobs=3)
        self.assertEqual([scored.token for scored in score.tokens], tokens[1:])
        for place, scored in enumerate(score.tokens):
            self.assertAlmostEqual(scored.logprob, logprobs[place][scored.token], places=4)
            self.assertEqual(len(scored.top), 3)
        self.assertAlmostEqual(score.total, sum(scored.logprob for scored in score.tokens))
        self.assertAlmostEqual(score.mean * len(score.tokens), score.total)

    def test_scores_are_the_perplexity_of_the_program(self):
        text = " ".join(PROMPTS)
        code, out, said = run_program("eval", "perplexity", MODEL, "-", stdin=text.encode())
        self.assertEqual(code, 0, said)
        nats = float(next(line for line in out.decode().splitlines() if "nats per token" in line).split()[0])
        self.assertAlmostEqual(-self.model.score(text).mean, nats, places=4)

    def test_generated_tokens_have_the_numbers_of_scoring_them(self):
        tokens = self.model.tokenize(PROMPTS[0])
        result = self.model.generate(tokens, max_tokens=12, top_logprobs=2, ignore_eos=True)
        score = self.model.score(tokens + result.tokens, top_logprobs=2)
        for said, scored in zip(reversed(result.logprobs), reversed(score.tokens)):
            self.assertEqual((said.token, said.logprob, said.top), (scored.token, scored.logprob, scored.top))

    def test_what_cannot_be_evaluated_is_refused(self):
        for call in (self.model.score, self.model.logits):
            with self.assertRaises(verbatim.BadInputError):
                call([])
            with self.assertRaises(verbatim.BadInputError):
                call([5, self.model.vocab_size])
            with self.assertRaises(verbatim.BadInputError):
                call([5] * (self.model.context + 1))
            with self.assertRaises(verbatim.Error):
                call([5, 6], reading="nothing")
            with self.assertRaises(TypeError):
                call(5)


if __name__ == "__main__":
    support.main()
