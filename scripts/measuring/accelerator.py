"""What docs/accelerator.md shows of SPEQ's accelerator: areas of modules in rtl/, and figure 9 with measured acceptance."""

import json
import subprocess
import time

from measuring.bench import ROOT, WORK, Absent, say
from measuring.measurements import measurement

SHAPES = ["llama3.1-8b", "vicuna-7b"]  # the models of figure 9
RECIPE = ('name = "speq-a16"\nsummary = "drafts as the accelerator computes them"\nsource = "SPEQ"\n[drafter]\nkind = "self"\n'
          'reading = "bsfp-draft-a16"\nstop = { length = 16, threshold = 0.6 }\n')


def yosys():
    """The version of Yosys, as it says it: "Yosys 0.23"."""
    try:
        said = subprocess.run(["yosys", "-V"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        raise Absent("there is no yosys; install what scripts/install-dependencies --rtl names") from None
    return " ".join(said.split()[:2])


@measurement("the areas of the accelerator's decoder and PE, as Yosys makes them of a library of gates")
def area(m):
    m.conditions = (f"{yosys()} with the Liberty file of Debian's qflow-tech-osu018, a 180 nm library, in areas of its NAND2X1; nothing is "
                    "placed, and nothing is said of time or of 28 nm.")
    m.repeats = 1
    found = {line["design"]: line["nand2"] for line in m.json(["scripts/rtl-area"], lines=True)}
    decoder, both = found["weight decoder of a PE"], found["PE, both modes"]
    full, draft = found["PE, full mode alone"], found["PE, quantize mode alone"]
    for design, nand2 in found.items():
        m.record({"design": design}, nand2=nand2, of_pe=nand2 / both)
    m.record({"ratio": "decoder over PE"}, value=decoder / both, paper=0.089)
    m.record({"ratio": "PE of both modes over one of full mode alone"}, value=both / full)
    m.record({"ratio": "PE of both modes over one of each"}, value=both / (full + draft))


def prompts_of(m, kinds, limit):
    """The first prompts of each kind."""
    texts = []
    for path in m.prompts(*kinds).values():
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()[:limit]
        texts += [json.loads(line)["prompt"] for line in lines]
    return texts


def drafted(m, recipe, length, threshold, texts, tokens):
    """The traces of decoding after each of the texts, and what their last lines say."""
    begin = time.monotonic()
    command = m.verbatim("generate", m.model(), "--recipe", recipe, "--draft-length", str(length), "--draft-threshold", str(threshold),
                         "-n", tokens, "--ignore-eos", "--portable", "--threads", "1")
    traces, ends = [], []
    for number, text in enumerate(texts):
        (ROOT / WORK / "traces").mkdir(parents=True, exist_ok=True)
        prompt = WORK / "traces" / f"prompt-{number}.txt"
        (ROOT / prompt).write_text(text, encoding="utf-8")
        trace = WORK / "traces" / f"{length}-{threshold:g}-{number}.jsonl"
        m.command([*command, "-f", str(prompt), "--trace", str(trace)])
        traces.append(str(trace))
        ends.append(json.loads((ROOT / trace).read_text(encoding="utf-8").splitlines()[-1]))
    m.said([*command, "-f", "PROMPT", "--trace", "TRACE"], ends, begin)
    return traces, ends


def simulated_speedup(m, shape, traces):
    """The time that FP16 takes for the tokens of all traces over that of the accelerator."""
    plain = ours = 0
    for trace in traces:
        command = [ROOT / "build" / "verbatim", "simulate", "--config", shape, "--trace", trace, "--json"]
        said = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        plain += said["baseline"]["seconds"]
        ours += said["decoding"]["seconds"]
    return plain / ours


@measurement("SPEQ's figure 9: acceptance by the length of drafts and the threshold, and the simulated speed; the same on every machine")
def draft_thresholds(m):
    limit, tokens = (1, "32") if m.quick else (2, "64")
    lengths, thresholds = ((4, 12, 20), (0, 0.4, 0.8)) if m.quick else ((4, 8, 12, 16, 20), [tenths / 10 for tenths in range(9)])
    texts = prompts_of(m, ("code", "sums", "dialogue"), limit)
    m.conditions = (f"Acceptance: the default model with portable kernels and `bsfp-draft-a16`, {limit} prompt{'s' if limit > 1 else ''} each of code, "
                    f"sums and dialogue, {tokens} tokens each at temperature 0. Speed: `verbatim simulate` with these traces, `speq` over `fp16`.")
    m.repeats = 1
    recipe = m.recipe("speq-a16", RECIPE)
    for length in lengths:
        for threshold in thresholds:
            say(f"  drafts of {length} down to {threshold:g}")
            traces, ends = drafted(m, recipe, length, threshold, texts, tokens)
            sums = {name: sum(end[name] for end in ends) for name in ("steps", "drafted", "accepted", "draft_passes", "prompt_tokens")}
            m.record({"length": length, "threshold": threshold}, prompts=len(texts), **sums,
                     acceptance=round(sums["accepted"] / sums["drafted"], 4) if sums["drafted"] else None,
                     accepted_length=round(sums["accepted"] / sums["steps"] + 1, 4), draft_length=round(sums["draft_passes"] / sums["steps"], 4),
                     **{shape: round(simulated_speedup(m, shape, traces), 4) for shape in SHAPES})
