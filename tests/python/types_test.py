"""The types of the package are those that it has, and importing it brings nothing that it does not need."""

import ast
import inspect
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import support
from support import run_python

import verbatim
from verbatim import _native

PACKAGE = Path(verbatim.__file__).parent


def check(*arguments):
    """Run mypy, of the interpreter that has it, as strictly as it can be."""
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *map(str, arguments)],
        capture_output=True, text=True, check=False, cwd="/",
        env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})  # fmt: skip


def signatures(module):
    """The keyword arguments that a stub gives each function of a class, overloads separately."""
    for node in ast.parse((PACKAGE / f"{module}.pyi").read_text()).body:
        if isinstance(node, ast.ClassDef):
            for function in node.body:
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    yield node.name, function


HAS_MYPY = subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True, check=False).returncode == 0


class Types(unittest.TestCase):
    @unittest.skipUnless(HAS_MYPY, "mypy is not installed")
    def test_the_package_and_a_program_that_uses_it_have_no_type_error(self):
        done = check("-p", "verbatim")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = check(Path(__file__).parent / "typed_use.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipUnless(HAS_MYPY, "mypy is not installed")
    def test_wrong_uses_have_type_errors(self):
        lines = [
            'model.generate("x", max_token=3)', 'model.generate("x", max_tokens="3")', "model.generate(3)",
            'model.generate("x").txt', 'model.generate("x", stream=True).text', 'model.batch(["x"], stream=True)',
            'for piece in model.generate("x"): pass', 'model.chat("x")', "model.score(3)", "model.context = 3",
            'verbatim.Model.load("x", reciep="auto")', 'generate(model, "x", num_beam=2)', "verbatim.Result()",
            'model.conversation().reply("x", stop=3)', "verbatim.BadInput", 'model.session().generate("x", timeout=3)',
        ]  # fmt: skip
        program = "import verbatim\nfrom verbatim.transformers import generate\ndef f(model: verbatim.Model) -> None:\n"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "wrong.py"
            file.write_text(program + "".join(f"    {line}\n" for line in lines))
            said = check(file).stdout
        found = {int(line.split(":")[1]) for line in said.splitlines() if ": error: " in line}
        missed = [line for place, line in enumerate(lines, 4) if place not in found]
        # Any class of a stub can be made, as far as mypy knows.
        self.assertEqual(missed, ["verbatim.Result()"], said)

    def test_stubs_name_every_option(self):
        options = set(_native.option_names())
        functions = {"generate", "agenerate", "batch", "chat", "achat", "reply"}
        seen = set()
        for module in ("_model", "_conversation", "_session"):
            expected = options - {"priority", "timeout"} if module == "_session" else options
            for _, function in signatures(module):
                if function.name in functions:
                    seen.add(function.name)
                    names = {argument.arg for argument in function.args.kwonlyargs} - {"stream", "tools", "on_text"}
                    self.assertEqual(names, expected, function.name)
        self.assertEqual(seen, functions)
        for function in functions - {"reply"}:
            words = inspect.getdoc(getattr(verbatim.Model, function))
            for option in options:
                self.assertIn(option, words)

    def test_stubs_have_what_the_package_has(self):
        def public(names):
            return {name for name in names if not name.startswith("_")}

        for module in ("_model", "_conversation", "_session", "_native"):
            real_module = sys.modules[f"verbatim.{module}"]
            tree = ast.parse((PACKAGE / f"{module}.pyi").read_text())
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    real = getattr(real_module, node.name)
                    stubbed = {each.name for each in node.body if hasattr(each, "name")}
                    stubbed |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}
                    self.assertEqual(public(stubbed), public(vars(real)), node.name)
        native = {node.name for node in ast.parse((PACKAGE / "_native.pyi").read_text()).body if hasattr(node, "name")}
        self.assertEqual(public(native), public(vars(_native)))

    def test_stubs_have_the_other_arguments_too(self):
        for module in ("_model", "_conversation", "_session"):
            for class_name, function in signatures(module):
                real = getattr(getattr(verbatim, class_name), function.name)
                if isinstance(real, property) or function.name.startswith("_"):
                    continue
                parameters = inspect.signature(real).parameters
                named = {name for name, each in parameters.items() if each.kind is not each.VAR_KEYWORD}
                stubbed = [argument.arg for argument in function.args.args + function.args.kwonlyargs]
                options = set(_native.option_names()) if len(named) < len(parameters) else set()
                self.assertEqual(set(stubbed) - {"cls"} - options - named, set(), function.name)
                self.assertEqual(named - set(stubbed) - {"stream"}, set(), function.name)

    def test_everything_that_is_public_has_a_docstring(self):
        for name in verbatim.__all__:
            each = getattr(verbatim, name)
            self.assertTrue(inspect.getdoc(each), name)
            if inspect.isclass(each) and not issubclass(each, Exception):
                for attribute, value in vars(each).items():
                    if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
                        self.assertTrue(inspect.getdoc(value), f"{name}.{attribute}")

    def test_importing_brings_neither_numpy_nor_asyncio(self):
        begin = time.perf_counter()
        done = run_python("""
import sys, time
begin = time.perf_counter()
import verbatim
print(round(1000 * (time.perf_counter() - begin)))
heavy = {"numpy", "asyncio", "json", "inspect", "dataclasses", "ssl"}
print(sorted(heavy & set(sys.modules)))
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        milliseconds, heavy = done.stdout.splitlines()
        self.assertEqual(heavy, "[]")
        print(f"importing took {milliseconds} ms of {round(1000 * (time.perf_counter() - begin))} for the interpreter")


if __name__ == "__main__":
    support.main()
