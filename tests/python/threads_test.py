"""A model serves many threads, and is closed under their hands without harm."""

import tempfile
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import support
from support import MODEL, PATIENCE, PATIENT_CAPACITY, PROMPTS, patient_model, run_python, wait_until

import verbatim


class Threads(unittest.TestCase):
    def test_eight_threads_share_a_model(self):
        cases = [(prompt, seed) for prompt in PROMPTS for seed in range(6)]

        def text(model, case):
            prompt, seed = case
            options = {"temperature": 0.9, "seed": seed, "max_tokens": 16}
            if seed % 2:
                return "".join(model.generate(prompt, stream=True, **options))
            return model.generate(prompt, **options).text

        with verbatim.Model.load(MODEL, "plain", max_batch=1) as model:
            alone = [text(model, case) for case in cases]
        with verbatim.Model.load(MODEL, "ml-specqd") as model, ThreadPoolExecutor(8) as threads:
            begin = threading.Barrier(8)

            def work(thread):
                begin.wait()  # so that there are eight at a time
                mine = range(thread, len(cases), 8)
                return {place: text(model, cases[place]) for place in mine}

            together = {}
            for part in threads.map(work, range(8)):
                together.update(part)
        self.assertEqual([together[place] for place in range(len(cases))], alone)

    def test_other_threads_run_while_a_text_is_computed(self):
        with verbatim.Model.load(MODEL, "plain") as model:
            seen = set()
            complete = threading.Event()

            def watch():
                # Without the lock this could not run before the text is complete.
                while not complete.wait(0.001):
                    seen.add(model.stats.running)

            watcher = threading.Thread(target=watch)
            watcher.start()
            try:
                model.generate(PROMPTS[0], max_tokens=300, ignore_eos=True)
            finally:
                complete.set()
                watcher.join()
        self.assertIn(1, seen)

    def test_closing_a_model_ends_what_it_generates(self):
        with tempfile.TemporaryDirectory() as folder:
            model = verbatim.Model.load(patient_model(folder), "plain", capacity=PATIENT_CAPACITY)
        stream = model.generate(PROMPTS[0], stream=True, **PATIENCE)
        next(stream)
        with ThreadPoolExecutor(4) as threads, model:
            answers = [threads.submit(model.generate, prompt, **PATIENCE) for prompt in PROMPTS]
            wait_until(lambda: model.stats.running == 5)
            model.close()
            model.close()
            for answer in answers:
                self.assertEqual(answer.result().finish_reason, "cancelled")
        self.assertEqual(stream.result().finish_reason, "cancelled")
        self.assertTrue(model.closed)
        with self.assertRaisesRegex(verbatim.UsageError, "closed"):
            model.generate("x")

    def test_a_stream_keeps_its_model(self):
        stream = verbatim.Model.load(MODEL, "plain").generate(PROMPTS[0], max_tokens=8, stream=True)
        self.assertGreater(len("".join(stream)), 0)
        self.assertEqual(len(stream.result().tokens), 8)

    def test_a_program_may_end_while_a_thread_generates(self):
        code = """
import sys, threading, verbatim
from support import PATIENCE, PATIENT_CAPACITY, wait_until
model = verbatim.Model.load(sys.argv[1], "plain", capacity=PATIENT_CAPACITY)
stream = model.generate("x", stream=True, **PATIENCE)
thread = threading.Thread(target=lambda: list(stream), daemon=True)
thread.start()
wait_until(lambda: model.stats.running == 1)
cycle = [model, stream]
cycle.append(cycle)  # so that nobody closes the model
"""
        with tempfile.TemporaryDirectory() as folder:
            done = run_python(code, patient_model(folder))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_program_may_end_while_a_thread_is_within_a_call(self):
        code = """
import os, sys, threading, time, verbatim
class Slow:  # so that the thread's call ends while the interpreter does, when no thread may have its lock any more
    def __del__(self, sleep=time.sleep):
        sleep(2)
slow = [Slow()]
slow.append(slow)  # a cycle, which the interpreter frees when it ends
del slow
model = verbatim.Model.load(sys.argv[1], "plain")
session = model.session()
# From here on the two threads take turns only where one gives up the interpreter's lock: the other one first when its
# call does so to compute, and this one not before it ends.
sys.setswitchinterval(1000)
within = []
def work():
    try:
        while True:
            within.append(True)
            CALL
            within.clear()
    except verbatim.UsageError as error:
        # In one piece: the thread ends where it next waits for the interpreter's lock, which writing gives up.
        os.write(1, f"{error}\\n".encode())
begun = threading.Lock()
begun.acquire()
thread = threading.Thread(target=lambda: (begun.release(), work()), daemon=True)
thread.start()
begun.acquire()
print(within, flush=True)
"""
        for call in (
            "model.score(list(range(5, 305)))",
            "session.truncate(0); session.generate([5, 6, 7], max_tokens=300, ignore_eos=True)",
        ):
            with self.subTest(call):
                done = run_python(code.replace("CALL", call), MODEL)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertRegex(done.stdout, r"^\[True\]\nthe interpreter is ending: .*\n$")

    def test_a_forked_process_is_told_to_load_a_model_of_its_own(self):
        code = """
import os, sys, verbatim
model = verbatim.Model.load(sys.argv[1], "plain")
child = os.fork()
if child == 0:
    try:
        model.generate("x")
    except verbatim.UsageError as error:
        print(error, flush=True)
    print(len(model.tokenize("x")) > 0, flush=True)
    sys.exit(0)
print(os.waitpid(child, 0)[1], len(model.generate("x", max_tokens=2, ignore_eos=True).tokens))
"""
        done = run_python(code, MODEL)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, "^the model was loaded before this process was forked: .*\nTrue\n0 2\n$")

    def test_a_forked_process_is_told_that_nobody_works_on_a_stream(self):
        code = """
import os, sys, verbatim
model = verbatim.Model.load(sys.argv[1], "plain")
stream = model.generate("x", max_tokens=50, ignore_eos=True, stream=True)
piece = next(stream)
child = os.fork()
if child == 0:
    for call in [lambda: next(stream), lambda: stream.result(), lambda: stream.done, stream._answer.poll,
                 stream._answer.fileno, stream._answer.rest]:
        try:
            call()
        except verbatim.UsageError as error:
            print(error, flush=True)
    with stream:
        stream.cancel()
    del stream
    sys.exit(0)
print(os.waitpid(child, 0)[1], piece + "".join(stream) == stream.result().text, len(stream.result().tokens))
"""
        done = run_python(code, MODEL)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        line = "the model was loaded before this process was forked: [^\n]*\n"
        self.assertRegex(done.stdout, f"^({line}){{6}}0 True 50\n$")

    def test_any_sequence_of_calls_ends_in_a_result_or_an_error(self):
        code = """
import os, random, sys, verbatim
model = verbatim.Model.load(sys.argv[1], "ngram", capacity=200)
for seed in range(120):
    chance = random.Random(seed)
    held = [model.conversation()]
    if seed % 10 == 9:
        model.close()
        model = verbatim.Model.load(sys.argv[1], chance.choice(["plain", "ngram", "ml-specqd"]), capacity=200)
    values = [None, "x", "import os", -1, 0, 3, 2**80, 1.5, float("nan"), [], [5, 6], ["x", "y"], {5: 1.0}, True, b"x", "\\udc80"]
    names = ["max_tokens", "temperature", "stop", "seed", "schema", "regex", "logit_bias", "recipe", "timeout", "stream", "nothing"]
    for step in range(12):
        options = {name: chance.choice(values) for name in chance.sample(names, chance.choice([0, 0, 1, 2]))}
        options.setdefault("max_tokens", chance.choice([1, 5, 20, 199, 500]))
        each = chance.choice(held)
        call = chance.choice([
            lambda: model.generate(chance.choice(values), **options),
            lambda: model.generate("def f(x):", stream=True, **options),
            lambda: model.batch([chance.choice(values) for _ in range(3)], **options),
            lambda: model.chat([{"role": "user", "content": chance.choice(values)}], **options),
            lambda: model.conversation(chance.choice(values)),
            lambda: each.reply(chance.choice(values), **options),
            lambda: each.result(), lambda: each.cancel(), lambda: next(each), lambda: each.done, lambda: each.messages,
            lambda: held.clear() or held.append(None), lambda: model.score(chance.choice(values)),
            lambda: model.tokenize(chance.choice(values)), lambda: model.detokenize(chance.choice(values)),
            lambda: model.piece(chance.choice(values)), lambda: model.stats,
            lambda: model.session(capacity=chance.choice([0, 30, 200, *values])), lambda: each.generate(chance.choice(values), **options),
            lambda: each.truncate(chance.choice(values)), lambda: each.save(chance.choice(values[:1] + values[3:4])),
            lambda: each.restore(chance.choice([sys.argv[1], *values])), lambda: each.close(), lambda: each.tokens,
        ])
        try:
            held.append(call())
        except (verbatim.Error, TypeError, AttributeError, StopIteration):
            pass
print("whole")
"""
        done = run_python(code, MODEL)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "whole\n", ""))


if __name__ == "__main__":
    support.main()
