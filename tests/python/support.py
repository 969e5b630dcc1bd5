"""What the tests of the Python package share. CTest says where the package and the program are."""

import importlib.util
import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
MODEL = REPOSITORY / "models" / "target"
PROGRAM = os.environ.get("VERBATIM_PROGRAM", str(REPOSITORY / "build" / "verbatim"))

PROMPTS = ["def fibonacci(n):", "import os\n", "Question: What is 2 + 3?\nAnswer:", "class Stack:\n    def push("]

needs_numpy = unittest.skipUnless(importlib.util.find_spec("numpy"), "NumPy is not installed")


# For answers and texts that last for many seconds on any machine, so that what happens meanwhile happens long before their
# end also on a machine with one busy core. They want the model of patient_model().
PATIENCE = {"max_tokens": 15_000, "ignore_eos": True}
PATIENT_CAPACITY = 16_000


def patient_model(folder):
    """Make the model MODEL with a long context in a folder, and return where it is."""
    model = Path(folder) / "patient"
    model.mkdir()
    for file in MODEL.iterdir():
        (model / file.name).symlink_to(file)
    config = json.loads((MODEL / "config.json").read_text())
    config["max_position_embeddings"] = 1 << 17
    (model / "config.json").unlink()
    (model / "config.json").write_text(json.dumps(config))
    return model


def wait_until(ready):
    """Wait for what comes soon, and fail if it never does. Other threads run meanwhile."""
    end = time.monotonic() + 300
    while not ready():
        if time.monotonic() > end:
            raise AssertionError("what is waited for did not come within minutes")
        time.sleep(0.001)


def run_program(*arguments, stdin=b""):
    """Run the program and return its exit code, its output and what it said on stderr, all in bytes."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def generated(prompt, *arguments):
    """The bytes that `verbatim generate` continues a prompt with."""
    code, text, said = run_program("generate", MODEL, "-p", prompt, *arguments)
    assert code == 0, said
    return text


def run_python(code, *arguments):
    """Run a program in Python with the package and this module, and return what subprocess.run() does, with text."""
    paths = [str(Path(__file__).resolve().parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})  # fmt: skip


def make_random_model(folder, *options):
    """Make a model with random weights and the tokenizer of MODEL in a folder; return what subprocess.run() does, with text."""
    return subprocess.run([sys.executable, REPOSITORY / "scripts" / "make-random-model", MODEL, folder, *options],
                          capture_output=True, text=True, check=False)  # fmt: skip


class _Lines(unittest.TestResult):
    """Says how each test went in the words of GoogleTest, which scripts/summarize-tests counts."""

    def startTest(self, test):
        super().startTest(test)
        self._begin = time.monotonic()
        self._went = "       OK "

    def _failed(self, test, error):
        self._went = "  FAILED  "
        print(self._exc_info_to_string(error, test), flush=True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test, err)

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            print(subtest)
            self._failed(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._went = "  SKIPPED "
        print(f"{test.id()}: Skipped\n{reason}")

    def stopTest(self, test):
        milliseconds = round(1000 * (time.monotonic() - self._begin))
        name = test.id().removeprefix("__main__.")
        print(f"[{self._went}] {name} ({milliseconds} ms)", flush=True)
        super().stopTest(test)


def main():
    """Run the tests of the program that is running."""
    result = _Lines()
    names = sys.argv[1:]
    module = sys.modules["__main__"]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)
    tests.run(result)
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
