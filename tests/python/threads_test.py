"""A model serves many threads, and is closed under their hands without harm."""

import subprocess
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import support
from support import MODEL, PROMPTS

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
            started = model.stats.finished
            seen = []

            def watch():
                # Without the lock this could not run before the text is complete.
                while model.stats.finished == started:
                    seen.append(model.stats.running)

            watcher = threading.Thread(target=watch)
            watcher.start()
            model.generate(PROMPTS[0], max_tokens=200, ignore_eos=True)
            watcher.join()
        self.assertIn(1, seen)

    def test_closing_a_model_ends_what_it_generates(self):
        model = verbatim.Model.load(MODEL, "plain")
        stream = model.generate(PROMPTS[0], max_tokens=900, ignore_eos=True, stream=True)
        next(stream)
        with ThreadPoolExecutor(4) as threads:
            answers = [threads.submit(model.generate, prompt, max_tokens=900, ignore_eos=True) for prompt in PROMPTS]
            while model.stats.running < 5:
                pass
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
model = verbatim.Model.load(sys.argv[1], "plain")
stream = model.generate("x", max_tokens=900, ignore_eos=True, stream=True)
thread = threading.Thread(target=lambda: list(stream), daemon=True)
thread.start()
while model.stats.running == 0:
    pass
cycle = [model, stream]
cycle.append(cycle)  # so that nobody closes the model
"""
        done = subprocess.run([sys.executable, "-c", code, MODEL], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    support.main()
