"""What sensitivities do for squeeze3 and squeeze4: the tables of SqueezeLLM (Kim's thesis, 3.1 and appendix B) for the default model.

The texts are those of docs/test-data.md and Debian's standard library of Python; the trainer has to be built
(docs/sensitivities.md).
"""

import hashlib
import json
import os
import pathlib
import time

from measuring.bench import ROOT, WORK, Absent
from measuring.measurements import measurement

STDLIB = pathlib.Path("/usr/lib/python3.11")  # of Debian's libpython3.11-stdlib
TEXTS = ["wikitext2_test", "python_heldout"]
OWN = {"wikitext2_test": ["wikitext2"], "python_heldout": ["python"]}  # what a text is calibrated on
SPLITS = [("0 %", 0, 0), ("0.05 %", 0.0005, 0), ("0.45 %", 0.0005, 0.004)]


def public_text(name):
    """A text of the public data, by a name in the folder of measurements, so that results name no machine's folders."""
    folder = os.environ.get("VERBATIM_TEST_DATA")
    path = pathlib.Path(folder or "") / "text" / f"{name}.txt"
    if not folder or not path.exists():
        raise Absent(f"there is no text {name}: set VERBATIM_TEST_DATA (docs/test-data.md)")
    link = WORK / "text" / path.name
    (ROOT / link).parent.mkdir(parents=True, exist_ok=True)
    (ROOT / link).unlink(missing_ok=True)
    (ROOT / link).symlink_to(path.absolute())
    return link


def python_text():
    """The files of the standard library but those that the text for judging holds."""
    if not STDLIB.exists():
        raise Absent(f"there is no {STDLIB}: install libpython3.11-stdlib")
    held_out = (ROOT / public_text("python_heldout")).read_text(encoding="utf-8")
    files = [path.read_text(encoding="utf-8") for path in sorted(STDLIB.glob("*.py"))]
    path = ROOT / WORK / "python_stdlib.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(text for text in files if text.strip() and text.strip() not in held_out), encoding="utf-8")
    return path


def digest_of(paths, *words):
    """A name for what files, and folders of files, and words are."""
    digest = hashlib.sha256()
    for path in (ROOT / path for path in paths):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            digest.update(hashlib.sha256(file.read_bytes()).digest() if file.is_file() else b"")
    return hashlib.sha256(digest.digest() + json.dumps(words).encode()).hexdigest()[:12]


def calibration_text(text):
    return {"wikitext2": lambda: public_text("wikitext2_valid"), "python": python_text}[text]()


def require_trainer():
    if not (ROOT / "build" / "verbatim-train").exists():
        raise Absent("build/verbatim-train is not built: cmake --preset release -DVERBATIM_TRAINING=ON (docs/sensitivities.md)")


def fisher(m, text, samples, measure="gradients"):
    """The file of sensitivities by so many sequences of a text. One that was made before is taken if the trainer, the model
    and the text are still the same, which its name tells."""
    require_trainer()
    source = calibration_text(text)
    options = ["--samples", str(samples), "--output-matrix", *(["--measure", measure] if measure != "gradients" else [])]
    digest = digest_of(["build/verbatim-train", "build/verbatim-gradients.so", m.model(), source], *options)
    path = WORK / f"fisher-{text}-{samples}-{digest}.safetensors"
    if not (ROOT / path).exists():
        m.command(["build/verbatim-train", "sensitivities", m.model(), source, "-o", path, *options])
    return path


def quantized(m, scheme, bits, text):
    """The default model by a scheme of `verbatim quantize`, which looks at a text if it looks at one."""
    calibration = [] if scheme == "rtn" else ["--calibration", calibration_text(text), "--calibration-tokens", "8192"]
    options = ["--scheme", scheme, "--bits", str(bits), *calibration]
    digest = digest_of(["build/verbatim", m.model(), *calibration[1:2]], *(str(option) for option in options))
    path = WORK / f"{scheme}-{bits}-{digest}"
    if not (ROOT / path).exists():
        m.command(m.verbatim("quantize", m.model(), "-o", path, *options))
    return path


def tokens(m):
    return 3000 if m.quick else 16384


def judge(m, key, text, reading, *extra, model=None, bits=None):
    """Records how far a reading is from BF16 on a text, that of another model from the default model's BF16."""
    output = m.json(m.verbatim("eval", "perplexity", model or m.model(), public_text(text), "--reading", reading, "--compare-with", "full",
                               "--max-tokens", str(tokens(m)), *extra))
    m.record({**key, "text": text}, perplexity=output["perplexity"], bits=bits or output["bits_per_weight"], excess=output["excess_nll"],
             error=output["excess_standard_error"], divergence=output["divergence"], divergence_error=output["divergence_standard_error"])


def judge_values(m, key, text, bits, sensitive, outliers, given=None, group=0, uniform=False):
    """Records how far the default model is from BF16 with the values that tables of so many bits give its weights."""
    judge(m, key, text, "f32", *squeezed(sensitive, outliers, given), "--squeeze-to-bits", str(bits),
          *(["--squeeze-group", str(group)] if group else []), *(["--squeeze-uniformly"] if uniform else []),
          "--compare-model", m.model(), bits=stored_bits(m.model(), bits, sensitive + outliers, group, uniform))


def stored_bits(model, bits, share, group=0, uniform=False):
    """The bits per weight of such tables: codes; 16 bits for every value of a table, or for a scale and for a zero point; and for the
    sparse part 32 bits for an entry and for the beginning of a column. What pads codes is left out."""
    total = weights = 0
    for path in sorted((ROOT / model).glob("*.safetensors")):
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        for shape in (of["shape"] for name, of in header.items() if name != "__metadata__" and len(of["shape"]) == 2):
            columns, inputs = shape
            tables = columns * -(-inputs // (group or inputs))
            weights += columns * inputs
            total += bits * columns * inputs + tables * (32 if uniform else 16 * 2 ** bits) + 32 * (share * columns * inputs + columns)
    return total / weights


def squeezed(sensitive, outliers, given=None):
    """The options of a packing in squeeze3 or squeeze4."""
    return ["--sensitive", str(sensitive), "--outliers", str(outliers), *(["--sensitivities", given] if given else [])]


def conditions(m):
    m.repeats = 1
    m.conditions = (f"The default model, the first {tokens(m)} tokens of a text in windows of 1024; nats per token above BF16 and divergence from it, "
                    "with the standard error of the difference.")


def samples(m):
    return 10 if m.quick else 100


@measurement("squeeze3 and squeeze4 with and without sensitivities, by the text that these are of, and rounding beside them")
def sensitivities(m):
    conditions(m)
    for format_, reading in (("int4", "int4-w4a16"), ("int4-asymmetric", "int4-asymmetric-w4a16")):
        for text in TEXTS:
            judge(m, {"reading": format_, "split": "0 %", "of": "none"}, text, reading)
    for reading in ("squeeze3", "squeeze4"):
        for text in TEXTS:
            for split, sensitive, outliers in SPLITS:
                for source in ("none", "wikitext2", "python"):
                    given = None if source == "none" else fisher(m, source, samples(m))
                    judge(m, {"reading": reading, "split": split, "of": source}, text, reading, *squeezed(sensitive, outliers, given))


@measurement("what the sparse part of squeeze3 holds: of the weights, of their sensitivity, and by columns")
def sparse_parts(m):
    m.repeats = 1
    m.conditions = ("The default model in squeeze3; all matrices together. The fullest hundredth of the columns is taken of each matrix, and what it "
                    "holds is a share of what is kept apart.")
    shares = {"0.05 %": (0.0005, 0), "0.45 %": (0.0005, 0.004), "0.45 % across the model": (0.0005, 0.004, "--outliers-across", "model")}
    for source in ("wikitext2", "python"):
        given = fisher(m, source, samples(m))
        for split, (sensitive, outliers, *across) in shares.items():
            path = WORK / "sparse-parts.vbt"
            m.command(m.verbatim("pack", m.model(), "-o", path, "--formats", "squeeze3", *squeezed(sensitive, outliers, given), *across))
            output = m.json(m.verbatim("inspect", path, "--sensitivities", given), f"{source} {split}")["packed"]["sparse"]["squeeze3"]
            (ROOT / path).unlink()
            bits = sum(of["bits_per_weight"] * of["weights"] for of in output["matrices"]) / output["weights"]
            m.record({"of": source, "split": split}, bits=bits, weights=output["entries"] / output["weights"], sensitivity=output["sensitivity_share"],
                     fullest=output["fullest_entries"] / output["entries"], most=output["most_entries"])


@measurement("squeeze3 by the number of samples that its sensitivities are of")
def sensitivity_samples(m):
    conditions(m)
    for count in (1, 10) if m.quick else (1, 2, 5, 10, 20, 100):
        for text, source in ((text, source) for text in TEXTS for source in OWN[text]):
            judge(m, {"samples": count}, text, "squeeze3", *squeezed(0, 0, fisher(m, source, count)))


@measurement("squeeze3 by the share of the most sensitive weights that it keeps apart")
def sensitive_shares(m):
    conditions(m)
    for share in (0, 0.0005) if m.quick else (0, 0.0001, 0.0002, 0.0005, 0.001, 0.002):
        for text, source in ((text, source) for text in TEXTS for source in OWN[text]):
            judge(m, {"share": share}, text, "squeeze3", *squeezed(share, 0, fisher(m, source, samples(m))))


@measurement("the schemes of `verbatim quantize` that round to groups of 128, in three and in four bits")
def rounding_schemes(m):
    conditions(m)
    for bits in (3, 4):
        for scheme in ("rtn", "awq", "gptq"):
            for text in TEXTS:
                for source in ("none",) if scheme == "rtn" else OWN[text] if m.quick else ("wikitext2", "python"):
                    judge(m, {"scheme": scheme, "levels": bits, "of": source}, text, "int4-w4a16", "--compare-model", m.model(),
                          model=quantized(m, scheme, bits, source))


def others(share):
    """What is left of the share of weights that are kept apart for the largest, after the most sensitive."""
    return max(round(share - 0.0005, 6), 0)


def percent_of(share):
    return f"{100 * share:g} %"


@measurement("tables at equal distances beside those of squeeze3 and squeeze4, by the share of weights that is kept apart")
def uniform_tables(m):
    conditions(m)
    shares = {3: (0, 0.0005, 0.0045), 4: (0, 0.0045)} if not m.quick else {3: (0, 0.0045), 4: (0,)}
    for bits, of_bits in shares.items():
        for share in of_bits:
            sensitive, outliers = min(share, 0.0005), others(share)
            for text, source in ((text, source) for text in TEXTS for source in OWN[text]):
                given = fisher(m, source, samples(m))
                for uniform in (True, False):
                    judge_values(m, {"table_bits": bits, "split": percent_of(share), "values": "equal distances" if uniform else "k-means"},
                                 text, bits, sensitive, outliers, given, uniform=uniform)


@measurement("tables of three bits for groups of inputs, and with a sparse part")
def grouped_tables(m):
    conditions(m)
    for group, share in ((0, 0), (256, 0), (128, 0), (256, 0.0005), (0, 0.0045)):
        for text, source in ((text, source) for text in TEXTS for source in OWN[text]):
            judge_values(m, {"group": group or "all", "split": percent_of(share)}, text, 3, min(share, 0.0005), others(share),
                         fisher(m, source, samples(m)), group)


@measurement("tables of three bits by the share of weights that is kept apart, beside those of four bits")
def sparsity_levels(m):
    conditions(m)
    shares = {3: (0, 0.0045, 0.015, 0.025, 0.045), 4: (0,)} if not m.quick else {3: (0, 0.015), 4: (0,)}
    for bits, of_bits in shares.items():
        for share in of_bits:
            for text, source in ((text, source) for text in TEXTS for source in OWN[text]):
                judge_values(m, {"table_bits": bits, "split": percent_of(share)}, text, bits, min(share, 0.0005), others(share),
                             fisher(m, source, samples(m)))


@measurement("squeeze3 with the squares of activations in place of those of gradients")
def activation_measure(m):
    conditions(m)
    for split, sensitive, outliers in SPLITS:
        for text, source in ((text, source) for text in TEXTS for source in OWN[text]):
            for measure in ("gradients", "activations"):
                judge(m, {"split": split, "measure": measure}, text, "squeeze3",
                      *squeezed(sensitive, outliers, fisher(m, source, samples(m), measure)))


@measurement("tables of two bits")
def two_bits(m):
    conditions(m)
    for share in (0, 0.001, 0.0045):
        for text in TEXTS:
            for source in ("none", *OWN[text]):
                given = None if source == "none" else fisher(m, source, samples(m))
                judge_values(m, {"split": percent_of(share), "of": source}, text, 2, min(share, 0.0005), others(share), given)


@measurement("what the sensitivities of the default model cost")
def sensitivity_cost(m):
    require_trainer()
    m.repeats = 1
    m.conditions = f"The default model, {samples(m)} samples of 512 tokens of WikiText-2's validation text, with the output matrix."
    path = WORK / "cost.safetensors"
    for measure in ("gradients", "activations"):
        (ROOT / path).unlink(missing_ok=True)
        command = ["build/verbatim-train", "sensitivities", m.model(), calibration_text("wikitext2"), "-o", path, "--samples", str(samples(m)),
                   "--output-matrix", "--measure", measure]
        begin = time.monotonic()
        usage = m.usage(command)
        seconds = time.monotonic() - begin
        m.said(command, {"seconds": seconds, "ru_maxrss": usage.ru_maxrss}, begin)
        m.record({"measure": measure}, seconds=seconds, gib=usage.ru_maxrss / 2**20)
        (ROOT / path).unlink()


@measurement("products in squeeze3 and squeeze4, without their sparse part, and with outliers in a hundredth of the columns")
def squeeze_kernels(m):
    shape, seconds = ("2048x2048", "0.05") if m.quick else ("4096x4096", "0.4")
    formats = [name + variant for name in ("squeeze4", "squeeze3") for variant in ("", "-dense", "-gathered")]
    m.conditions = (f"A matrix of {shape.replace('x', ' x ')} random weights. Dense: without the sparse part; gathered: all outliers are in a "
                    "hundredth of the columns.")
    for format_ in formats:
        for output in m.each(m.bench("kernels", "--formats", format_, "--shapes", shape, "--rows", "1,8,16", "--seconds", seconds)):
            for result in output["results"]:
                m.record({"format": result["format"], "rows": result["rows"]}, fraction=result["fraction_of_bandwidth"],
                         gbs=result["gbs"], seconds=result["seconds"])
