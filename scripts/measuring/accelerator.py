"""What docs/accelerator.md shows of SPEQ's accelerator: areas of modules in rtl/, and figure 9 with measured acceptance."""

import json
import subprocess
import time

from measuring.bench import ROOT, WORK, Absent, Failed, say, shown
from measuring.measurements import measurement

SHAPES = ["llama3.1-8b", "vicuna-7b"]  # the models of figure 9


def yosys():
    """The version of Yosys, as it says it: "Yosys 0.23"."""
    try:
        said = subprocess.run(["yosys", "-V"], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        raise Absent("there is no yosys; install what scripts/install-dependencies --rtl names") from None
    return " ".join(said.split()[:2])


def printed(command):
    """What a command prints."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failed(shown(command, {}))
    return done.stdout


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


def drafted(m, length, threshold, texts, tokens):
    """The traces of decoding after each of the texts, and the lines that they hold."""
    begin = time.monotonic()
    command = m.verbatim("generate", m.model(), "--recipe", "speq", "--draft-length", str(length), "--draft-threshold", str(threshold),
                         "-n", tokens, "--ignore-eos", "--portable", "--threads", "1")
    traces, lines = [], []
    for number, text in enumerate(texts):
        (ROOT / WORK / "traces").mkdir(parents=True, exist_ok=True)
        prompt = WORK / "traces" / f"prompt-{number}.txt"
        (ROOT / prompt).write_text(text, encoding="utf-8")
        trace = WORK / "traces" / f"{length}-{threshold:g}-{number}.jsonl"
        m.command([*command, "-f", str(prompt), "--trace", str(trace)])
        traces.append(str(trace))
        lines.append([json.loads(line) for line in (ROOT / trace).read_text(encoding="utf-8").splitlines()])
    m.said([*command, "-f", "PROMPT", "--trace", "TRACE"], [of[-1] for of in lines], begin)
    return traces, lines


def simulated_speedup(m, shape, traces):
    """The time that FP16 takes for the tokens of all traces over that of the accelerator."""
    plain = ours = 0
    for trace in traces:
        said = json.loads(printed(m.verbatim("simulate", "--config", shape, "--trace", trace, "--json")))
        plain += said["baseline"]["seconds"]
        ours += said["decoding"]["seconds"]
    return plain / ours


@measurement("SPEQ's figure 9: acceptance by the length of drafts and the threshold, and the simulated speed; the same on every machine")
def draft_thresholds(m):
    limit, tokens = (1, "32") if m.quick else (2, "64")
    lengths, thresholds = ((4, 12, 20), (0, 0.4, 0.8)) if m.quick else ((4, 8, 12, 16, 20), [tenths / 10 for tenths in range(9)])
    texts = prompts_of(m, ("code", "sums", "dialogue"), limit)
    m.conditions = (f"Acceptance: the default model with portable kernels and the recipe `speq`, {limit} prompt{'s' if limit > 1 else ''} each of code, "
                    f"sums and dialogue, {tokens} tokens each at temperature 0. Speed: `verbatim simulate` with these traces, `speq` over `fp16`.")
    m.repeats = 1
    for length in lengths:
        for threshold in thresholds:
            say(f"  drafts of {length} down to {threshold:g}")
            traces, lines = drafted(m, length, threshold, texts, tokens)
            sums = {name: sum(of[-1][name] for of in lines) for name in ("steps", "drafted", "accepted", "draft_passes", "prompt_tokens")}
            # What verbatim simulate's page decodes: of each step what was drafted, accepted, and the passes that it took.
            steps = [{"prompt_tokens": of[-1]["prompt_tokens"],
                      "steps": [[step["drafted"], step["accepted"], step["draft_passes"]] for step in of[:-1]]} for of in lines]
            m.record({"length": length, "threshold": threshold}, prompts=len(texts), **sums,
                     acceptance=round(sums["accepted"] / sums["drafted"], 4) if sums["drafted"] else None,
                     accepted_length=round(sums["accepted"] / sums["steps"] + 1, 4), draft_length=round(sums["draft_passes"] / sums["steps"], 4),
                     **{shape: round(simulated_speedup(m, shape, traces), 4) for shape in SHAPES}, traces=steps)


TRAFFIC = ["llama3.1-8b", "llama2-7b", "llama2-13b"]  # whose share of weights the paper's section II names


def claims_of(m, lines):
    """Records what `simulate --paper` prints, line by line."""
    part = mapping = ""
    for line in lines:
        words = line.split()
        if not line.startswith(" "):
            part = line
        elif line.startswith("  groups ") and line.split(":")[0] == line and "share" in line and not words[-1][0].isdigit():
            mapping = line.strip()
        elif part.startswith("Tables II and III") and len(words) == 11 and words[7] == "%":
            m.record({"model": words[0], "task": words[1]}, length=float(words[2]), acceptance=float(words[3]), paper=float(words[4]),
                     simulated=float(words[5]), deviation=round(float(words[6]) / 100, 4), draft_time=float(words[8]), verify_time=float(words[9]),
                     fitted=float(words[10]))
        elif part.startswith("Figures 7 and 8") and words[0].startswith(("fp16", "olive", "tender")):
            name, paper, simulated, *rest = words
            deviation, *rest = rest[:1] + rest[2:] if rest[1] == "%" else rest
            energies = dict(zip(("energy_paper", "energy_memory", "energy_chip"), rest))
            m.record({"over": name}, **{what: float(value) for what, value in {"paper": paper, "simulated": simulated, **energies}.items() if value != "-"},
                     **({"deviation": round(float(deviation) / 100, 4)} if deviation != "-" else {}))
        elif part.startswith("Times of passes") and len(words) == 4 and words[1] == "GB/s":
            m.record({"mapping": mapping, "bandwidth": float(words[0])}, draft_time=float(words[2]), verify_time=float(words[3]))
        elif part.startswith("Sensitivity") and words[0] != "changed":
            m.record({"changed": line[:38].strip()}, **dict(zip(("speedup", "draft_time", "verify_time"), map(float, words[-3:]))))


@measurement("what SPEQ prints beside what its machine does in the simulator; the same on every machine")
def speq_claims(m):
    m.conditions = ("`verbatim simulate --paper`: `speq` with LPDDR5-6400, 256 tokens after prompts of 1024, L and r of the paper's table II; nothing is "
                    "fitted but the column that says so.")
    m.repeats = 1
    begin = time.monotonic()
    command = m.verbatim("simulate", "--paper")
    said = printed(command).splitlines()
    m.said(command, said, begin)
    claims_of(m, said)
    for model in TRAFFIC:
        said = m.json(m.verbatim("simulate", "--config", model, "--prompt", "1024", "-n", "1024"))
        m.record({"traffic": model}, weights=said["decoding"]["weight_share"], paper=0.988)
