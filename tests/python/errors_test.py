"""What is used wrongly is refused with an exception, and with the line that the program says."""

import math
import tempfile
import unittest
from pathlib import Path

import support
from support import MODEL, run_program, run_python

import verbatim


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = verbatim.Model.load(MODEL, "plain")

    @classmethod
    def tearDownClass(cls):
        cls.model.close()

    def test_exceptions_have_kinds_with_the_exit_codes_of_the_program(self):
        codes = {verbatim.BadInputError: 1, verbatim.UsageError: 2, verbatim.MachineError: 3}
        for kind, code in codes.items():
            self.assertTrue(issubclass(kind, verbatim.Error))
            self.assertEqual(kind.exit_code, code)
            self.assertEqual(kind.__module__, "verbatim")

    def test_the_line_is_that_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            gguf = Path(folder) / "broken.gguf"
            gguf.write_bytes(b"GGUF" + b"\xff" * 60)
            recipe = Path(folder) / "recipe.toml"
            recipe.write_text("name = 3\n")
            missing = Path(folder) / "nothing"
            cases = [
                (lambda: verbatim.Model.load(missing), ["generate", missing, "-p", "x"]),
                (lambda: verbatim.Model.load(gguf), ["generate", gguf, "-p", "x"]),
                (lambda: verbatim.Model.load(folder), ["generate", folder, "-p", "x"]),
                (lambda: verbatim.Model.load(MODEL, "nothing"), ["generate", MODEL, "-p", "x", "--recipe", "nothing"]),
                (lambda: verbatim.Model.load(MODEL, str(recipe)), ["generate", MODEL, "-p", "x", "--recipe", recipe]),
                (lambda: self.model.generate("x", temperature=-1), ["generate", MODEL, "-p", "x", "--temperature=-1"]),
                (lambda: self.model.generate("x", top_p=0), ["generate", MODEL, "-p", "x", "--top-p", "0"]),
                (lambda: self.model.generate("x", top_k=-1), ["generate", MODEL, "-p", "x", "--top-k=-1"]),
                (lambda: self.model.generate("x", min_p=2), ["generate", MODEL, "-p", "x", "--min-p", "2"]),
                (lambda: self.model.generate("x", repetition_penalty=0),
                 ["generate", MODEL, "-p", "x", "--repetition-penalty", "0"]),
                (lambda: self.model.generate("x", schema='{"type": "nothing"}'),
                 ["generate", MODEL, "-p", "x", "--schema", '{"type": "nothing"}']),
                (lambda: self.model.generate("x " * 5000), ["generate", MODEL, "-p", "x " * 5000]),
                (lambda: self.model.conversation(format="nothing"), ["chat", MODEL, "--format", "nothing"]),
            ]  # fmt: skip
            for call, arguments in cases:
                with self.subTest([str(argument)[:40] for argument in arguments]):
                    with self.assertRaises(verbatim.Error) as raised:
                        call()
                    code, _, said = run_program(*arguments)
                    # The program may say first what it has noticed about the model.
                    self.assertEqual(said.decode().splitlines()[-1], f"verbatim: {raised.exception}")
                    self.assertEqual(code, raised.exception.exit_code)

    def test_a_temperature_that_is_no_number_is_refused_in_the_words_of_the_library(self):
        with self.assertRaisesRegex(verbatim.UsageError, "^temperature is nan; it must be a number of at least 0"):
            self.model.generate("x", temperature=math.nan)

    def test_values_of_another_type_are_type_errors(self):
        for name, value in [
            ("temperature", "1"), ("temperature", None), ("temperature", True), ("max_tokens", 1.0),
            ("max_tokens", "1"), ("max_tokens", False), ("top_k", 1.5), ("seed", None), ("stop", 3), ("stop", [3]),
            ("stop", b"x"), ("stop_tokens", "x"), ("stop_tokens", [1.5]), ("stop_tokens", 3), ("ignore_eos", 1),
            ("logit_bias", [1]), ("logit_bias", {"a": 1}), ("logit_bias", {1: "a"}), ("schema", 3), ("regex", 3),
            ("top_logprobs", "2"), ("origins", None), ("recipe", 3), ("priority", "high"), ("timeout", "1"),
            ("prefill_chunk", None), ("shown_tokens", 3),
        ]:  # fmt: skip
            with self.subTest(f"{name}={value!r}"), self.assertRaisesRegex(TypeError, f"^{name}: .* is expected, not"):
                self.model.generate("x", **{name: value})

    def test_values_out_of_range_are_usage_errors(self):
        for name, value in [
            ("max_tokens", -1), ("max_tokens", 2**70), ("seed", -1), ("seed", 2**64), ("top_k", 2**40),
            ("stop_tokens", [-1]), ("stop_tokens", [2**31]), ("logit_bias", {-1: 0}), ("logit_bias", {5: math.nan}),
            ("logit_bias", {5: math.inf}), ("temperature", math.inf), ("temperature", 10**400), ("top_logprobs", -1),
            ("top_logprobs", 65), ("timeout", -1), ("timeout", math.nan), ("timeout", math.inf), ("prefill_chunk", 0),
            ("presence_penalty", math.nan), ("stop", ""), ("stop", ["x", ""]), ("recipe", "nothing"),
        ]:  # fmt: skip
            with self.subTest(f"{name}={value!r}"), self.assertRaises(verbatim.UsageError):
                self.model.generate("x", **{name: value})
        with self.assertRaisesRegex(verbatim.UsageError, "schema or to a regex"):
            self.model.generate("x", schema={}, regex="x")

    def test_arguments_that_there_are_not_are_type_errors(self):
        message = [{"role": "user", "content": "x"}]
        for name, call in [
            ("generate", lambda **more: self.model.generate("x", **more)),
            ("batch", lambda **more: self.model.batch(["x"], **more)),
            ("chat", lambda **more: self.model.chat(message, **more)),
            ("reply", lambda **more: self.model.conversation().reply("x", **more)),
            ("load", lambda **more: verbatim.Model.load(MODEL, **more)),
            ("score", lambda **more: self.model.score("x", **more)),
            ("logits", lambda **more: self.model.logits("x", **more)),
            ("tokenize", lambda **more: self.model.tokenize("x", **more)),
            ("conversation", lambda **more: self.model.conversation(**more)),
        ]:
            with self.subTest(name), self.assertRaisesRegex(TypeError, rf"{name}\(\).*'max_token'"):
                call(max_token=3)

    def test_prompts_that_are_none_are_refused(self):
        for prompt in (None, 3, 3.5, b"x", {"x": 1}, object(), [1.5], ["x"], [None], {1, 2}):
            with self.subTest(repr(prompt)), self.assertRaises(TypeError):
                self.model.generate(prompt)
        for prompt in ([], [self.model.vocab_size], "x\udc80"):
            with self.subTest(repr(prompt)), self.assertRaises(verbatim.BadInputError):
                self.model.generate(prompt)
        with self.assertRaises(verbatim.UsageError):
            self.model.generate([-1])
        for prompts in ("x", b"x", 3, None, [3], [None]):
            with self.subTest(repr(prompts)), self.assertRaises(TypeError):
                self.model.batch(prompts)
        for stream in (1, None, "yes"):
            with self.subTest(repr(stream)), self.assertRaisesRegex(TypeError, "stream"):
                self.model.generate("x", stream=stream)

    def test_arguments_of_load_are_checked(self):
        for name, value in [
            ("path", 3), ("path", None), ("recipe", 3), ("recipe", None), ("recipes", 3), ("formats", [3]),
            ("cache", 3), ("draft_model", 3), ("threads", "2"), ("threads", None), ("max_batch", 1.5),
            ("capacity", "x"), ("cache_bytes", None), ("prompt_cache", 1), ("cache_dir", 3), ("progress", 3),
        ]:  # fmt: skip
            with self.subTest(f"{name}={value!r}"), self.assertRaisesRegex(TypeError, name):
                verbatim.Model.load(**{"path": MODEL, "recipe": "plain", name: value})
        for name, value in [
            ("threads", -1), ("max_batch", 0), ("max_batch", 2**31), ("capacity", -1), ("cache_bytes", -1),
            ("formats", ["nothing"]), ("cache", "nothing"), ("recipe", ""), ("recipe", "draft-model"),
            ("recipes", ["nothing"]), ("draft_model", MODEL),
        ]:  # fmt: skip
            with self.subTest(f"{name}={value!r}"), self.assertRaises(verbatim.Error):
                verbatim.Model.load(**{"path": MODEL, "recipe": "plain", name: value})
        with self.assertRaisesRegex(TypeError, "Model.load"):
            verbatim.Model("models/target")

    def test_a_closed_model_refuses_everything(self):
        model = verbatim.Model.load(MODEL, "plain")
        conversation = model.conversation()
        with model:
            self.assertFalse(model.closed)
        self.assertIn("closed", repr(model))
        message = [{"role": "user", "content": "x"}]
        for call in [
            lambda: model.generate("x"), lambda: model.generate([5]), lambda: model.generate("x", stream=True),
            lambda: model.batch(["x"]), lambda: model.chat(message), lambda: model.score("x y"),
            lambda: model.chat(message, tools=[{}]), lambda: model.logits("x"), lambda: model.tokenize("x"),
            lambda: model.detokenize([5]), lambda: model.piece(5), lambda: model.find_token("x"), lambda: model.stats,
            lambda: model.context, lambda: model.vocab_size, lambda: model.bos_token, lambda: model.eos_tokens,
            lambda: model.warnings, lambda: model.conversation(), lambda: conversation.reply("x"),
        ]:  # fmt: skip
            with self.assertRaisesRegex(verbatim.UsageError, "the model is closed"):
                call()

    def test_names_of_files_may_hold_any_bytes(self):
        with self.assertRaisesRegex(verbatim.BadInputError, "does not exist"):
            verbatim.Model.load(b"/nothing/\xff")
        with self.assertRaises(ValueError):
            verbatim.Model.load("nothing\0more")

    def test_files_that_run_out_are_named(self):
        code = """
import resource, sys, verbatim
model = verbatim.Model.load(sys.argv[1], "plain")
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
streams = []
try:
    while True:
        streams.append(model.generate("x", max_tokens=1, stream=True))
except verbatim.MachineError as error:
    print(error)
streams.clear()
print(len(model.batch(["x"] * 200, max_tokens=1)))
"""
        done = run_python(code, MODEL)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        line, count = done.stdout.splitlines()
        self.assertIn("Too many open files", line)
        self.assertEqual(count, "200")


if __name__ == "__main__":
    support.main()
