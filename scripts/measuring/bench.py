"""What a measurement works with: the program, models and prompts, and the record of what it ran and found."""

import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from measuring.results import ROOT, summary

WORK = pathlib.Path("build") / "measure"  # models, prompts and finished steps; from the root of the repository
LABORATORY = {"kernels", "passes", "attention", "context", "sweep", "drafting", "agent"}


class Failed(Exception):
    """A command of a measurement failed; it has said why on standard error."""


class Absent(Exception):
    """Something that a measurement needs is not there; the message says what."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def shown(command, environment):
    """A command as one would type it in the root of the repository."""
    return " ".join([f"{name}={value}" for name, value in environment.items()] + [shlex.quote(str(part)) for part in command])


class Bench:
    """One measurement under way."""

    def __init__(self, name, options, version):
        self.name = name
        self.options = options
        self.quick = options.quick
        self.version = version
        self.repeats = options.repeats or (1 if options.quick else 3)
        self.conditions = ""
        self.runs = []
        self.records = {}

    # Programs

    def verbatim(self, *words):
        return ["build/verbatim", *words]

    def bench(self, kind, *words):
        """The command of a benchmark, which is in the laboratory's own program if that was built."""
        if kind in LABORATORY and (ROOT / "build" / "verbatim-bench").exists():
            return ["build/verbatim-bench", kind, *words]
        return ["build/verbatim", "bench", kind, *words]

    def command(self, command, **more):
        """Runs a command in the root of the repository for what it leaves; its standard output goes to `stdout`."""
        say(f"  {shown(command, {})}")
        result = subprocess.run([str(part) for part in command], cwd=ROOT, check=False, **{"stdout": subprocess.DEVNULL, **more})
        if result.returncode != 0:
            raise Failed(shown(command, {}))

    def usage(self, command):
        """Runs a command for what it leaves; what of the machine it used, peak memory included."""
        say(f"  {shown(command, {})}")
        process = subprocess.Popen([str(part) for part in command], cwd=ROOT, stdout=subprocess.DEVNULL)
        status, usage = os.wait4(process.pid, 0)[1:]
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise Failed(shown(command, {}))
        return usage

    def json(self, command, run=0, environment=None, lines=False):
        """What the command prints with --json, with `lines` a list of its lines. A step that this version has finished before
        is not run again."""
        environment = environment or {}
        command = [*command, "--json"]
        text = shown(command, environment)
        step = ROOT / WORK / "steps" / (hashlib.sha1(f"{self.version} {run} {text}".encode()).hexdigest() + ".json")
        if step.exists() and not self.options.again:
            entry = json.loads(step.read_text(encoding="utf-8"))
        else:
            say(f"  {text}")
            begin = time.monotonic()
            result = subprocess.run([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False,
                                    env={**os.environ, **environment})
            if result.returncode != 0:
                raise Failed(text)
            output = [json.loads(line) for line in result.stdout.splitlines()] if lines else json.loads(result.stdout)
            entry = {"command": text, "seconds": round(time.monotonic() - begin, 1), "output": output}
            step.parent.mkdir(parents=True, exist_ok=True)
            step.write_text(json.dumps(entry), encoding="utf-8")
        self.runs.append(entry)
        return entry["output"]

    def said(self, command, output, begin):
        """Notes a command that stands for several, and what they said, which began at that time of time.monotonic()."""
        self.runs.append({"command": shown(command, {}), "seconds": round(time.monotonic() - begin, 1), "output": output})

    def each(self, command, environment=None):
        """The outputs of the command, run as often as this measurement is repeated."""
        for run in range(self.repeats):
            yield self.json(command, run, environment)

    # Numbers

    def record(self, key, **numbers):
        """Notes numbers under the fields that name them; those of several runs become a median with its extent."""
        name = json.dumps(key)
        for what, value in numbers.items():
            self.records.setdefault(name, {}).setdefault(what, []).append(value)

    def values(self):
        return [{**json.loads(name), **{what: summary(values) for what, values in numbers.items()}}
                for name, numbers in self.records.items()]

    # Models and prompts

    def model(self):
        return "models/target"

    def draft_model(self):
        path = self.options.draft_model
        if not (ROOT / path).exists():
            raise Absent(f"there is no draft model {path}; name one with --draft-model")
        return path

    def large_model(self):
        """The default model enlarged, so that its weights have to come from memory."""
        width, depth = (2, 16) if self.quick else (4, 23)
        path = WORK / f"width-{width}-depth-{depth}"
        if not (ROOT / path).exists():
            (ROOT / WORK).mkdir(parents=True, exist_ok=True)
            self.command(self.verbatim("inflate", self.model(), "-o", path, "--width", str(width), "--depth", str(depth)))
        return str(path)

    def large_model_words(self):
        return "a model of 194 million parameters" if self.quick else "a model of 1.09 billion parameters"

    def quantized_model(self, scheme, large=True):
        source = self.large_model() if large else self.model()
        path = WORK / f"{pathlib.Path(source).name}-{scheme}"
        if not (ROOT / path).exists():
            calibration = ["--calibration", self.text()] if scheme in ("awq", "gptq", "atom") else []
            self.command(self.verbatim("quantize", source, "-o", path, "--scheme", scheme, *calibration))
        return str(path)

    def random_model(self):
        """A model of random weights with heads of 128, wide enough that its cache is what long contexts read."""
        layers, intermediate = (3, 5632) if self.quick else (9, 16384)
        return self.made_at_random(f"random-{layers}", layers, "--heads", "16", "--kv-heads", "16", "--head-dim", "128", "--hidden", "2048",
                                   "--intermediate", intermediate)

    def random_mixture(self):
        """A mixture of eight experts, of which a token is given to two, with random weights; 1.1 billion parameters if not quick."""
        layers = 2 if self.quick else 12
        return self.made_at_random(f"random-mixture-{layers}", layers, "--heads", "16", "--kv-heads", "16", "--head-dim", "64", "--hidden",
                                   "1024", "--intermediate", "3584", "--experts", "8")

    def made_at_random(self, name, layers, *sizes):
        path = WORK / name
        if not (ROOT / path).exists():
            (ROOT / WORK).mkdir(parents=True, exist_ok=True)
            self.command(["scripts/make-random-model", self.model(), path, "--layers", str(layers), *map(str, sizes)])
        return str(path)

    def large_file(self, mix):
        """The enlarged model as a GGUF file in a mix of types: q8_0 or q4_k_m."""
        source = self.large_model()
        path = WORK / f"{pathlib.Path(source).name}-{mix}.gguf"
        if not (ROOT / path).exists():
            self.command(["cmake", "--build", "build", "--target", "write_gguf"])
            unfinished = path.with_suffix(".unfinished")
            self.command(["build/tests/write_gguf", source, unfinished, mix])
            (ROOT / unfinished).rename(ROOT / path)
        return str(path)

    def text(self):
        if not (ROOT / self.options.text).exists():
            raise Absent(f"there is no text {self.options.text}; name one with --text")
        return self.options.text

    def prompts(self, *kinds):
        """Files of prompts by kind, cut from the one file that has all; only those kinds that it has."""
        source = ROOT / self.options.prompts
        if not source.exists():
            raise Absent(f"there are no prompts {self.options.prompts}; name a file with --prompts")
        found = {}
        for line in source.read_text(encoding="utf-8").splitlines():
            if line.strip():
                entry = json.loads(line)
                found.setdefault(kind_of(entry.get("kind", "code")), []).append(line)
        files = {}
        for kind in kinds:
            if kind in found:
                path = WORK / "prompts" / f"{kind}.jsonl"
                (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
                (ROOT / path).write_text("\n".join(found[kind]) + "\n", encoding="utf-8")
                files[kind] = str(path)
        if not files:
            raise Absent(f"{self.options.prompts} has no prompts of the kinds {', '.join(kinds)}")
        return files

    def agent_data(self):
        path = self.options.agent_data
        if path is None or not (ROOT / path).exists():
            raise Absent("the questions of LLMCompiler's repository are not here; name its folder datasets with --agent-data")
        return path

    def long_prompts(self, count):
        """Prompts of some 870 tokens, of the text."""
        path = WORK / "prompts" / f"long-{count}.jsonl"
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        with open(ROOT / path, "w", encoding="utf-8") as out:
            self.command(["scripts/long-prompts", self.text(), "-n", str(count)], stdout=out)
        return str(path)

    def recipe(self, name, text):
        path = WORK / "recipes" / f"{name}.toml"
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        return str(path)


def kind_of(kind):
    """The kinds of prompts by the names that tables have for them."""
    for beginning, name in (("code", "code"), ("python", "code"), ("sum", "sums"), ("math", "sums"), ("question", "questions"),
                            ("dialog", "dialogue"), ("chat", "dialogue")):
        if kind.lower().startswith(beginning):
            return name
    return kind.lower()
