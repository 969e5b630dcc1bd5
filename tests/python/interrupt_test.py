"""Ctrl-C ends whatever is computed long before its end."""

import tempfile
import unittest
from pathlib import Path

import support
from support import make_random_model, needs_numpy, patient_model, run_python

# What the programs below share: a thread that sends Ctrl-C once the engine has made some passes. All passes are counted,
# also the one that is running when the signal comes.
WATCH = """
import os, signal, sys, threading, time
import verbatim
from support import PATIENCE, PATIENT_CAPACITY, wait_until

def interrupt_after(model, passes, send=lambda: os.kill(os.getpid(), signal.SIGINT)):
    def watch():
        wait_until(lambda: model.stats.whole_model.count >= passes)
        send()
    threading.Thread(target=watch, daemon=True).start()

def passes_at_rest(model):
    # No other thread submits anything, so that what waits is not taken for what runs.
    wait_until(lambda: model.stats.waiting == 0 and model.stats.running == 0)
    return model.stats.whole_model.count
"""

# A prompt that takes PASSES passes.
PASSES = 3000
LONG_PREFILL = WATCH + """
model = verbatim.Model.load(sys.argv[1], "plain", capacity=100_000)
interrupt_after(model, 3)
try:
    model.generate([5, 6, 7, 8] * (8 * PASSES), max_tokens=4, prefill_chunk=32)
    sys.exit("nothing interrupted the prompt")
except KeyboardInterrupt:
    pass
print(passes_at_rest(model), model.generate([5, 6], max_tokens=2).finish_reason)
""".replace("PASSES", str(PASSES))

# A Ctrl-C in the middle of whatever `{call}` does.
INTERRUPTED = WATCH + """
import asyncio
model = verbatim.Model.load(sys.argv[1], "plain", capacity=PATIENT_CAPACITY)
options = PATIENCE
interrupt_after(model, 5)
try:
    CALL
    sys.exit("nothing interrupted the text")
except KeyboardInterrupt:
    pass
# A Ctrl-C that comes between two lines of Python is told of with the frames that hold what computes, until here.
print(passes_at_rest(model) < PATIENCE["max_tokens"], model.stats.finished)
"""

# The signal comes to another thread than the one that waits, and pieces come so fast that the wait never ends by itself.
RELENTLESS = WATCH + """
model = verbatim.Model.load(sys.argv[1], "plain", capacity=PATIENT_CAPACITY)
stream = model.generate("x", stream=True, **PATIENCE)
interrupt_after(model, 2000, lambda: signal.raise_signal(signal.SIGINT))  # long after the waiting has begun
try:
    stream.result()
    sys.exit("nothing interrupted the text")
except KeyboardInterrupt:
    print(stream.result().finish_reason)
"""

# The text is long beside the time that a busy machine takes to send the signal.
HANDLED = WATCH + """
model = verbatim.Model.load(sys.argv[1], "plain", capacity=PATIENT_CAPACITY)
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(model.stats.running))
interrupt_after(model, 5)
result = model.generate("def fibonacci(n):", max_tokens=1000, ignore_eos=True)
print(seen, result.finish_reason, len(result.tokens))
"""

# How many of the calls, none or one, complete although a second signal ends them once the first one was handled. Without
# handlers while it computes, a call would complete: the first signal would be handled at its end, and no second one come.
COMPLETED = WATCH + """
import tempfile
sys.setswitchinterval(1000)  # so that the other thread runs only while this one is in a call without the lock
TEXT = [5, 6, 7, 8] * 7500

def completed(call, begun=lambda: True):
    calling, handled, calls = [], [], []
    def handle(*_):
        handled.append(None)
        if len(handled) == 2:
            raise KeyboardInterrupt
    def shoot():
        for count in range(2):
            wait_until(lambda: calling == [False] or calling and begun())
            if calling == [True]:
                os.kill(os.getpid(), signal.SIGINT)
            wait_until(lambda: calling == [False] or len(handled) > count)
    thread = threading.Thread(target=shoot)
    thread.start()
    signal.signal(signal.SIGINT, handle)
    try:
        calling[:] = [True]
        call()
        calls.append(None)
    except KeyboardInterrupt:
        pass
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    calling[:] = [False]
    thread.join()
    return len(calls)

# Loading is over soon on some machines, and so it is tried again.
def least_completed(call, begun):
    return int(all(completed(call, begun) for _ in range(30)))

told = []
def load(recipe):
    told.clear()
    os.environ["VERBATIM_CACHE_DIR"] = tempfile.mkdtemp(dir=sys.argv[2])  # so that what passes cost is measured
    verbatim.Model.load(sys.argv[1], recipe, progress=told.append)

loading = lambda: bool(told)
measuring = lambda: 1.0 in told
"""


class Interrupt(unittest.TestCase):
    def lines_of(self, code, *arguments):
        done = run_python(code, *arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_ctrl_c_in_a_long_prompt_ends_it_long_before_its_end(self):
        with tempfile.TemporaryDirectory() as folder:
            # Passes that take long beside a thread's waking.
            random = Path(folder) / "random"
            make_random_model(random, "--layers", "3", "--hidden", "512", "--heads", "8", "--kv-heads", "8", "--head-dim", "64",
                              "--intermediate", "4096").check_returncode()  # fmt: skip
            at_rest, finish = self.lines_of(LONG_PREFILL, random)
        self.assertLess(int(at_rest), PASSES // 2)
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
            with self.subTest(call), tempfile.TemporaryDirectory() as folder:
                lines = self.lines_of(INTERRUPTED.replace("CALL", call), patient_model(folder))
                self.assertEqual(lines, ["True", str(requests)])

    def test_ctrl_c_ends_the_waiting_for_a_stream_whose_pieces_come_one_upon_another(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.lines_of(RELENTLESS, patient_model(folder)), ["cancelled"])

    def test_a_handler_that_throws_nothing_ends_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.lines_of(HANDLED, patient_model(folder)), ["[1]", "length", "1000"])

    def lines_with_completed(self, code):
        with tempfile.TemporaryDirectory() as folder:
            return self.lines_of(COMPLETED + code, patient_model(folder), folder)

    def test_ctrl_c_ends_scores(self):
        code = """
model = verbatim.Model.load(sys.argv[1], "plain")
print(completed(lambda: model.score(TEXT)), len(model.score(TEXT[:100]).tokens))
"""
        self.assertEqual(self.lines_with_completed(code), ["0", "99"])

    def test_ctrl_c_ends_a_text_of_a_session_and_leaves_the_sequence_as_it_was(self):
        code = """
model = verbatim.Model.load(sys.argv[1], "plain")
session = model.session(capacity=PATIENT_CAPACITY)
print(completed(lambda: session.generate("x", **PATIENCE)), session.tokens)
"""
        self.assertEqual(self.lines_with_completed(code), ["0", "[]"])

    @needs_numpy
    def test_ctrl_c_ends_logits(self):
        code = """
model = verbatim.Model.load(sys.argv[1], "plain")
print(completed(lambda: model.logits(TEXT)))
"""
        self.assertEqual(self.lines_with_completed(code), ["0"])

    def test_ctrl_c_ends_loading(self):
        code = 'print(least_completed(lambda: load("plain"), loading))'
        self.assertEqual(self.lines_with_completed(code), ["0"])

    def test_ctrl_c_ends_the_measuring_of_what_passes_cost(self):
        code = 'print(least_completed(lambda: load("auto"), measuring))'
        self.assertEqual(self.lines_with_completed(code), ["0"])


if __name__ == "__main__":
    support.main()
