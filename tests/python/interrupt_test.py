"""Ctrl-C ends a generation within one pass of the model."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support
from support import MODEL, REPOSITORY, run_python

# What the programs below share: a thread that sends Ctrl-C once the engine has made some passes. All passes are counted,
# also the one that is running when the signal comes.
WATCH = """
import os, signal, sys, threading, time
import verbatim

def interrupt_after(model, passes):
    sent = []
    def watch():
        while model.stats.whole_model.count < passes:
            time.sleep(0.001)
        sent.append(model.stats.whole_model.count)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=watch, daemon=True).start()
    return sent

def passes_at_rest(model):
    while model.stats.running > 0:
        time.sleep(0.001)
    return model.stats.whole_model.count
"""

LONG_PREFILL = WATCH + """
model = verbatim.Model.load(sys.argv[1], "plain", capacity=100_000)
sent = interrupt_after(model, 3)
try:
    model.generate([5, 6, 7, 8] * 20_000, max_tokens=4)
    sys.exit("nothing interrupted the prompt")
except KeyboardInterrupt:
    at_once = model.stats.whole_model.count
print(sent[0], at_once, passes_at_rest(model), model.generate([5, 6], max_tokens=2).finish_reason)
"""

# A Ctrl-C in the middle of whatever `{call}` does.
INTERRUPTED = WATCH + """
import asyncio
model = verbatim.Model.load(sys.argv[1], "plain")
options = {"max_tokens": 900, "ignore_eos": True}
interrupt_after(model, 5)
try:
    CALL
    sys.exit("nothing interrupted the text")
except KeyboardInterrupt:
    passes_at_rest(model)
print(model.stats.finished)
"""

HANDLED = WATCH + """
model = verbatim.Model.load(sys.argv[1], "plain")
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(model.stats.running))
interrupt_after(model, 5)
result = model.generate("def fibonacci(n):", max_tokens=300, ignore_eos=True)
print(seen, result.finish_reason, len(result.tokens))
"""


class Interrupt(unittest.TestCase):
    def lines_of(self, code, *arguments):
        done = run_python(code, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_ctrl_c_in_a_long_prompt_ends_it_within_one_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            # Passes that take long beside a thread's waking: hundreds of them would be left.
            random = Path(folder) / "random"
            subprocess.run([sys.executable, REPOSITORY / "scripts" / "make-random-model", MODEL, random, "--layers", "3",
                            "--hidden", "512", "--heads", "8", "--kv-heads", "8", "--head-dim", "64", "--intermediate",
                            "4096"], check=True)  # fmt: skip
            sent, at_once, at_rest, finish = self.lines_of(LONG_PREFILL, random)
        # One pass may end between the count and the signal, and one is running when it comes.
        self.assertLessEqual(int(at_once), int(sent) + 2)
        self.assertLessEqual(int(at_rest), int(sent) + 2)
        self.assertEqual(finish, "length")

    def test_ctrl_c_ends_whatever_generates(self):
        for call, requests in [
            ('model.generate("x", **options)', 1),
            ('list(model.generate("x", stream=True, **options))', 1),
            ('model.generate("x", stream=True, **options).result()', 1),
            ('model.batch(["x", "y", "z"], **options)', 3),
            ('model.chat([{"role": "user", "content": "x"}], **options)', 1),
            ('model.conversation().reply("x", **options)', 1),
            ('asyncio.run(model.agenerate("x", **options))', 1),
        ]:
            with self.subTest(call):
                self.assertEqual(self.lines_of(INTERRUPTED.replace("CALL", call), MODEL), [str(requests)])

    def test_a_handler_that_throws_nothing_ends_nothing(self):
        self.assertEqual(self.lines_of(HANDLED, MODEL), ["[1]", "length", "300"])

    def test_ctrl_c_ends_scores_logits_and_loading(self):
        program = """
import signal, sys, threading, time, os, verbatim
def interrupted(call):
    done = threading.Event()
    def shoot():
        while not done.wait(0.02):
            os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=shoot)
    try:
        thread.start()
        while True:
            call()
    except KeyboardInterrupt:
        pass
    while True:
        try:
            done.set()
            thread.join()
            return True
        except KeyboardInterrupt:
            pass
model = verbatim.Model.load(sys.argv[1], "plain")
text = list(range(5, 1000))
print(interrupted(lambda: model.score(text)), interrupted(lambda: model.logits(text)),
      interrupted(lambda: verbatim.Model.load(sys.argv[1], "plain")), len(model.score(text).tokens))
os.environ["VERBATIM_CACHE_DIR"] = sys.argv[2]  # so that what passes cost is measured
print(interrupted(lambda: verbatim.Model.load(sys.argv[1], "auto")))
"""
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.lines_of(program, MODEL, folder), ["True", "True", "True", "994", "True"])


if __name__ == "__main__":
    support.main()
