"""The measurements: what each runs, and which numbers of the output it keeps.

A measurement is a function over a Bench. It records numbers under fields that name them; tables.py and figures.py show
them. A measurement whose prompts, text or draft model are absent raises Absent and is passed over with that message.
"""

import itertools
import json

from measuring.bench import Absent

MEASUREMENTS = {}
SIMULATED = {"agent", "draft-thresholds", "speq-claims"}  # on a simulated clock: the numbers are those of every machine
SYNTHESIZED = {"area"}  # by Yosys: the numbers are those of its version and of the library of gates

ISAS = ["amx", "avx512", "avx2"]
READINGS = ["bf16", "bsfp", "mxbf16", "mxfp4", "int8", "int4", "int4-asymmetric", "squeeze4", "squeeze3", "f16", "f32"]
# All but bsfp-draft-a16, which SPEQ's accelerator computes: it has the kernel of plain C++ alone, and the quarter of a second that this takes in
# each round would disturb the others.
KERNEL_READINGS = ["bf16", "f16", "f32", "int8-w8a16", "int8-w8a8", "int4-w4a16", "int4-w4a8", "int4-w4a4", "int4-asymmetric-w4a16",
                   "int4-asymmetric-w4a8", "mxfp4-w4a16", "mxfp4-w4a8", "bsfp-full", "bsfp-draft", "mxbf16-full", "mxbf16-draft", "squeeze3", "squeeze4"]
LOSSLESS = ["nested", "speq", "ml-specqd", "self-int4", "ngram", "auto"]
WITH_DRAFT_MODEL = ["ml-specqd-2", "draft-model"]


# Drafts with the bits that a file's own codes hold, without n-grams.
OWN_BITS = """name = "own-bits"
summary = "drafts with the reading that each matrix drafts with best"
source = "docs/performance.md"
[drafter]
kind = "self"
reading = "draft"
[drafter.stop]
length = 8
threshold = 0.4
"""


def measurement(about):
    """Adds the function to the list under its name, with hyphens."""
    def add(function):
        MEASUREMENTS[function.__name__.replace("_", "-")] = (about, function)
        return function
    return add


def draft_model_if_any(m):
    try:
        return ["--draft-model", m.draft_model()]
    except Absent:
        return []


def isas_of(m):
    """The instruction sets of this machine, from the best down to AVX2."""
    best = m.options.isa
    return ISAS[ISAS.index(best):] if best in ISAS else [best]


@measurement("what ./run shows: plain decoding and auto on three prompts, with the default model")
def demo(m):
    m.conditions = "The default model; what `./run` shows."
    for output in m.each(m.verbatim("demo", m.model())):
        for line in output["lines"]:
            key = {"kind": line["kind"], "temperature": line["temperature"]}
            m.record(key, plain=line["plain_tokens_per_second"], speculative=line["tokens_per_second"], ratio=line["speedup"],
                     accepted=line["acceptance_rate"], identical=line["identical"])


@measurement("recipes over plain decoding on an enlarged model, by kind of prompt and temperature")
def decode_speeds(m):
    recipes = ["ml-specqd", "speq", "nested", "auto"] if m.quick else LOSSLESS
    limit, tokens = ("1", "40") if m.quick else ("4", "96")
    m.conditions = (f"{m.large_model_words().capitalize()}, {limit} prompt{'s' if limit != '1' else ''} of each kind, {tokens} tokens each; "
                    "geometric means. Every text was that of plain decoding.")
    files = m.prompts("code", "sums", "dialogue")
    for temperature in (0, 0.8):
        command = m.bench("decode", m.large_model(), "--recipes", ",".join(recipes), "--prompts", ",".join(files.values()), "--limit",
                          limit, "-n", tokens, "--ignore-eos", "--temperature", str(temperature))
        for output in m.each(command):
            for result in output["results"]:
                m.record({"recipe": result["recipe"], "prompts": result["prompt_set"], "temperature": temperature},
                         speedup=result["speedup"], tokens_per_second=result["tokens_per_second"],
                         weight_bytes=result["weight_bytes"], identical=result["identical"])


@measurement("how many drafts each recipe has accepted, with the default model; the same on every machine but for near-ties")
def acceptance(m):
    extra = draft_model_if_any(m)
    recipes = [*LOSSLESS[:-1], "early-exit"] + ([*WITH_DRAFT_MODEL, "bild"] if extra else [])
    limit, tokens = ("3", "64") if m.quick else ("10", "128")
    m.conditions = f"The default model, {limit} prompts of each kind, {tokens} tokens each. Every text of a lossless recipe was that of plain decoding."
    m.repeats = 1  # the numbers do not depend on the machine's speed
    files = m.prompts("code", "sums")
    for temperature in (0, 0.8):
        output = m.json(m.bench("decode", m.model(), "--recipes", ",".join(recipes), *extra, "--prompts", ",".join(files.values()),
                                "--limit", limit, "-n", tokens, "--ignore-eos", "--temperature", str(temperature)))
        for result in output["results"]:
            if result["recipe"] != "plain":
                m.record({"recipe": result["recipe"], "prompts": result["prompt_set"], "temperature": temperature},
                         accepted=result["acceptance_rate"], per_pass=result["mean_accepted_length"],
                         weight_bytes=result["weight_bytes"], agreement=result["agreement"])


@measurement("the default model with plain decoding, ml-specqd and auto, by instruction set")
def default_model(m):
    tokens = "64" if m.quick else "200"
    m.conditions = f"The default model, prompts of code, {tokens} tokens each, temperature 0."
    prompts = m.prompts("code")["code"]
    for isa in isas_of(m):
        command = m.bench("decode", m.model(), "--recipes", "ml-specqd,auto", "--prompts", prompts, "--limit", "2", "-n", tokens,
                          "--ignore-eos")
        for output in m.each(command, {"VERBATIM_ISA": isa}):
            for result in output["results"]:
                m.record({"isa": isa, "recipe": result["recipe"]}, tokens_per_second=result["tokens_per_second"],
                         speedup=result["speedup"])


@measurement("whole passes of an enlarged model in the lossless formats and in MXFP4, and reading a prompt")
def passes(m):
    rows, seconds, prompt = ("1,8", "0.3", "128") if m.quick else ("1,8,16", "1.5", "512")
    m.conditions = f"{m.large_model_words().capitalize()}, after 64 tokens; a prompt of {prompt} tokens in BF16."
    for format_, reading in (("bf16", "bf16"), ("bsfp", "bsfp-full"), ("mxbf16", "mxbf16-full"), ("mxfp4", "mxfp4-w4a8")):
        command = m.bench("passes", m.large_model(), "--formats", format_, "--reading", reading, "--rows", rows, "--seconds", seconds,
                          "--prompt-tokens", prompt if format_ == "bf16" else "0")
        for output in m.each(command):
            for of in output["passes"]:
                m.record({"reading": reading, "rows": of["rows"]}, seconds=of["seconds"], fraction=of["fraction_of_bandwidth"],
                         ratio=of["ratio_to_one_row"])
            if format_ == "bf16":
                m.record({"prefill": output["prefill"]["tokens"]}, tokens_per_second=output["prefill"]["tokens_per_second"],
                         tflops=output["prefill"]["tflops"])


@measurement("files as people have them: passes and prompts of GGUF files in Q8_0 and Q4_K_M, and a mixture of experts")
def files(m):
    seconds, prompt = ("0.3", "128") if m.quick else ("1.5", "512")
    m.conditions = (f"{m.large_model_words().capitalize()}, after 64 tokens, and prompts of {prompt} tokens. The mixture has random weights, eight "
                    "experts and two for each token.")
    large = {"BF16": m.large_model(), "Q8_0": m.large_file("q8_0"), "Q4_K_M": m.large_file("q4_k_m")}
    isas = isas_of(m)
    passes_of = [(isa, name) for isa in isas + (["avx2-plain"] if "avx2" in isas else []) for name in large]
    for isa, name in passes_of + [(isas[0], "BF16, mixture")]:
        mixture = name not in large
        command = m.bench("passes", m.random_mixture() if mixture else large[name], "--rows", "1,8", "--seconds", seconds, "--prompt-tokens",
                          "0" if mixture else prompt)
        for output in m.each(command, {"VERBATIM_ISA": isa}):
            one, eight = output["passes"]
            prefill = {} if mixture else {"prefill": output["prefill"]["tokens_per_second"]}
            m.record({"isa": isa, "file": name}, seconds=one["seconds"], fraction=one["fraction_of_bandwidth"], ratio=eight["ratio_to_one_row"],
                     **prefill)


@measurement("what drafts for GGUF files in Q8_0 and Q4_K_M: their own bits, a copy in MXFP4, n-grams")
def file_drafts(m):
    tokens = "40" if m.quick else "96"
    m.conditions = (f"{m.large_model_words().capitalize()}, two prompts of code, {tokens} tokens each, temperature 0. Every text was that of "
                    "plain decoding.")
    prompts = m.prompts("code")["code"]
    own = m.recipe("own-bits", OWN_BITS)
    for mix, recipe in itertools.product(("q8_0", "q4_k_m"), (own, "ml-specqd", "ngram", "auto")):
        # One by one: a recipe uses all formats that are loaded, those of another among them.
        command = m.bench("decode", m.large_file(mix), "--recipes", recipe, "--prompts", prompts, "--limit", "2", "-n", tokens, "--ignore-eos")
        for output in m.each(command):
            for result in output["results"]:
                if result["recipe"] != "plain":
                    m.record({"file": mix.upper(), "recipe": result["recipe"]}, speedup=result["speedup"], accepted=result["acceptance_rate"],
                             weight_bytes=result["weight_bytes"], identical=result["identical"])


@measurement("what drafts with fewer experts cost: passes of a mixture of experts by reading, experts and rows")
def fewer_experts(m):
    m.conditions = "A mixture of eight experts with random weights, of which the model takes two for a token; after 64 tokens."
    for reading, experts in (("bf16", 2), ("bf16", 1), ("mxfp4-w4a8", 2), ("mxfp4-w4a8", 1)):
        command = m.bench("passes", m.random_mixture(), "--formats", "full,mxfp4", "--reading", reading, "--experts", str(experts), "--rows",
                          "1,2,4,8", "--seconds", "0.3" if m.quick else "1.5", "--prompt-tokens", "0")
        for output in m.each(command):
            m.record({"reading": reading, "experts": experts}, weight_bytes=output["passes"][0]["weight_bytes"],
                     **{f"rows{of['rows']}": of["seconds"] for of in output["passes"]})


@measurement("products with one matrix in every reading, as a share of the speed of memory")
def kernels(m):
    shape, seconds = ("4096x4096", "0.05") if m.quick else ("8192x8192", "2")
    m.conditions = f"A matrix of {shape.replace('x', ' x ')} random weights."
    formats = READINGS[:7] if m.quick else READINGS
    command = m.bench("kernels", "--formats", ",".join(formats), "--readings", ",".join(KERNEL_READINGS), "--shapes", shape, "--rows", "1,8,16",
                      "--seconds", seconds)
    for output in m.each(command):
        for result in output["results"]:
            m.record({"reading": result["reading"], "rows": result["rows"]}, fraction=result["fraction_of_bandwidth"],
                     gbs=result["gbs"], seconds=result["seconds"])


@measurement("attention of one row over long contexts, by kind of cache")
def attention(m):
    contexts, seconds = ("16384", "0.05") if m.quick else ("16384,65536,262144", "0.4")
    m.conditions = "One row, head dimension 128, 8 key-value heads, in memory that no cache holds."
    for output in m.each(m.bench("attention", "--contexts", contexts, "--groups", "1,4", "--seconds", seconds)):
        for result in output["results"]:
            key = {"context": result["context"], "group": result["query_heads_per_kv_head"], "cache": result["cache"],
                   "reading": result["reading"]}
            m.record(key, seconds=result["seconds"], fraction=result["fraction_of_bandwidth"], speedup=result["speedup"])


@measurement("what kinds of cache do to a model's predictions")
def cache_quality(m):
    tokens = "3000" if m.quick else "12000"
    m.conditions = f"The default model, at most {tokens} tokens of a text in windows of 1024."
    m.repeats = 1
    for cache, extra in CACHES:
        output = m.json(m.verbatim("eval", "perplexity", m.model(), m.text(), "--compare-with", "full", "--cache", cache, "--max-tokens",
                                   tokens, *extra))
        m.record({"cache": cache, "reading": "draft" if extra else "full", "text": "text"},
                 **{what: output[what] for what in ("excess_nll", "excess_standard_error", "divergence", "divergence_standard_error",
                                                    "agreement")})


CACHES = [("f32", []), ("f16", []), ("int8", []), ("hierarchical", []), ("hierarchical:group=32", []), ("hierarchical", ["--draft-cache"]),
          ("hierarchical:bits=4", []), ("hierarchical:bits=4,values=channel", []), ("hierarchical:bits=4,keys=position", []),
          ("hierarchical:bits=4,keys=position,values=channel", [])]


@measurement("what formats and readings do to a model's predictions")
def format_quality(m):
    tokens = "3000" if m.quick else "65536"
    m.conditions = f"The default model, at most {tokens} tokens of a text in windows of 1024."
    m.repeats = 1
    full = None
    for row, reading, extra in QUALITY:
        rounded = "--round-to-bits" in extra
        output = m.json(m.verbatim("eval", "perplexity", m.model(), m.text(), "--reading", reading, "--max-tokens", tokens, *extra,
                                   *([] if rounded else ["--compare-with", "full"])))
        full = full or output["perplexity"]
        numbers = {"perplexity": output["perplexity"], "ratio": output["perplexity"] / full}
        if not rounded:
            numbers |= {"bits": output["bits_per_weight"], "agreement": output["agreement"], "overlap": output["overlap"]}
        m.record({"row": row, "reading": "" if rounded else reading, "text": "text"}, **numbers)


QUALITY = [("bf16", "bf16", []), ("f16", "f16", []), ("f32", "f32", []), ("bsfp", "bsfp-full", []), ("bsfp", "bsfp-draft", []),
           ("mxbf16", "mxbf16-full", []), ("mxbf16", "mxbf16-draft", []), ("int8", "int8-w8a16", []), ("int8", "int8-w8a8", []),
           ("int4", "int4-w4a16", []), ("int4", "int4-w4a8", []), ("int4", "int4-w4a4", []),
           ("int4-asymmetric", "int4-asymmetric-w4a16", []), ("int4-asymmetric", "int4-asymmetric-w4a8", []),
           ("mxfp4", "mxfp4-w4a16", []), ("mxfp4", "mxfp4-w4a8", []), ("squeeze4", "squeeze4", []),
           ("squeeze4, dense only", "squeeze4", ["--dense-only"]), ("*4 bits, rounded to nearest*", "full", ["--round-to-bits", "4"]),
           ("squeeze3", "squeeze3", []), ("squeeze3, dense only", "squeeze3", ["--dense-only"]),
           ("*3 bits, rounded to nearest*", "full", ["--round-to-bits", "3"])]


@measurement("what the schemes of `verbatim quantize` leave of a model")
def schemes(m):
    tokens, limit = ("3000", "2") if m.quick else ("16384", "32")
    m.conditions = f"The default model, at most {tokens} tokens of a text; continuations of {limit} prompts of sums by 64 tokens."
    m.repeats = 1
    prompts = m.prompts("sums")["sums"]
    output = m.json(m.verbatim("eval", "perplexity", m.model(), m.text(), "--reading", "full", "--max-tokens", tokens))
    m.record({"scheme": "none", "reading": "bf16", "text": "text"}, perplexity=output["perplexity"])
    recipes = [m.recipe(name, f'name = "{name}"\nsummary = "plain decoding"\nsource = "none"\nreading = "int4-{name}"\n')
               for name in ("w4a8", "w4a4")]
    for scheme in ("rtn", "awq", "gptq", "atom", "quarot"):
        model = m.quantized_model(scheme, large=False)
        output = m.json(m.bench("decode", model, "--recipes", ",".join(recipes), "--prompts", prompts, "--limit", limit, "-n", "64"))
        continued = {of["recipe"]: of["agreement"] for of in output["results"]}
        for reading in ("w4a16", "w4a8", "w4a4"):
            compare = [] if reading == "w4a16" else ["--compare-with", "int4-w4a16"]
            output = m.json(m.verbatim("eval", "perplexity", model, m.text(), "--reading", f"int4-{reading}", "--max-tokens", tokens,
                                       *compare))
            m.record({"scheme": scheme, "reading": f"int4-{reading}", "text": "text"}, perplexity=output["perplexity"],
                     **({"agreement": output["agreement"], "continuations": continued[reading]} if compare else {}))


@measurement("many sequences at once: tokens per second by recipe and size of the batch")
def throughput(m):
    batches, tokens, refills = ("1,4,8", "24", "1") if m.quick else ("1,2,4,8,16,32", "64", "2")
    m.conditions = f"{m.large_model_words().capitalize()}, prompts of code cut to 32 tokens, answers of {tokens}."
    prompts = m.prompts("code")["code"]
    command = m.bench("throughput", m.large_model(), "--recipes", "auto,ml-specqd,nested", "--batch", batches, "--prompts", prompts,
                      "--prompt-tokens", "32", "--refills", refills, "-n", tokens)
    for output in m.each(command):
        for result in output["results"]:
            record_batch(m, result)


def record_batch(m, result, **more):
    drafted = result["draft"]["count"] > 0
    m.record({**more, "batch": result["batch"], "recipe": result["recipe"]}, tokens_per_second=result["tokens_per_second"],
             speedup=result["speedup"], accepted=result["acceptance_rate"] if drafted else None,
             verify_count=result["verify"]["count"], verify_rows=result["verify"]["rows_per_pass"],
             verify_seconds=per_pass(result["verify"]), draft_count=result["draft"]["count"],
             draft_rows=result["draft"]["rows_per_pass"] if drafted else None, draft_seconds=per_pass(result["draft"]))


def per_pass(passes_):
    return passes_["seconds"] / passes_["count"] if passes_["count"] else None


@measurement("QSpec in batches on models made by `verbatim quantize`")
def qspec_batches(m):
    batches, tokens = ("1,8", "16") if m.quick else ("1,4,8,16,32", "24")
    m.conditions = f"{m.large_model_words().capitalize()} in int4, prompts of code cut to 32 tokens, answers of {tokens}; over `w4a16`."
    prompts = m.prompts("code")["code"]
    for scheme in (["atom"] if m.quick else ["atom", "quarot"]):
        command = m.bench("throughput", m.quantized_model(scheme), "--baseline", "w4a16", "--recipes", f"qspec-{scheme},w4a4", "--batch",
                          batches, "--prompts", prompts, "--prompt-tokens", "32", "--refills", "1", "-n", tokens)
        for output in m.each(command):
            for result in output["results"]:
                record_batch(m, result, scheme=scheme)


@measurement("from which acceptance on drafts of four bits gain, by batch and instruction set")
def drafting(m):
    batches, seconds = ("1,4,8", "0.1") if m.quick else ("1,2,4,8,16,32", "0.5")
    m.conditions = f"{m.large_model_words().capitalize()} in int4: `int4-w4a4` drafts, `int4-w4a16` verifies, reckoned from the costs of passes."
    command = m.bench("drafting", m.quantized_model("rtn"), "--isas", ",".join(isas_of(m)), "--batch", batches, "--seconds", seconds)
    for output in m.each(command):
        for of in output["isas"]:
            for batch in of["batches"]:
                speeds = {f"speed_at_{gain['acceptance']:g}": gain["speed"] for gain in batch["gains"]}
                m.record({"isa": of["isa"].split()[0], "batch": batch["batch"]}, seconds_plain=batch["seconds_plain"],
                         seconds_draft=batch["seconds_draft"], seconds_verify=batch["seconds_verify_by_length"][-1],
                         peak_plain=batch["tflops_plain"] / of["peak_bf16_tflops"],
                         peak_draft=batch["tflops_draft"] / of["peak_bf16_tflops"], break_even=batch["break_even_acceptance"], **speeds)


@measurement("how often drafts from a part of the past are kept, by the length of a draft")
def draft_lengths(m):
    count, tokens, lengths = (3, "48", (1, 2, 4, 6)) if m.quick else (6, "90", (1, 2, 3, 4, 5, 6))
    m.conditions = f"The default model, {count} long prompts, {tokens} tokens after each, a budget of a quarter."
    m.repeats = 1
    prompts = m.long_prompts(count)
    files = {}
    for kind, length in itertools.product(("window", "snapkv"), lengths):
        name = f"{'streamingllm' if kind == 'window' else kind}-{length}"
        files[name] = m.recipe(name, f'name = "{name}"\nsummary = "a part of the past drafts"\nsource = "none"\n\n[drafter]\nkind = "self"\n'
                                     f'reading = "full"\ncache = "{kind}"\nbudget = 0.25\n\n[drafter.stop]\nlength = {length}\n')
    for temperature in (0, 0.8):
        output = m.json(m.bench("decode", m.model(), "--recipes", ",".join(files.values()), "--prompts", prompts, "-n", tokens,
                                "--ignore-eos", "--temperature", str(temperature)))
        for result in output["results"]:
            recipe, _, length = result["recipe"].rpartition("-")
            if recipe:
                m.record({"text": "text", "temperature": temperature, "recipe": recipe, "length": int(length)},
                         accepted=result["acceptance_rate"])


@measurement("recipes for long contexts: how often drafts are kept, and the speed at any length")
def contexts(m):
    lengths, seconds, count = ("4096,16384", "0.02", 1) if m.quick else ("4096,16384,32768,65536,131072", "0.3", 6)
    recipes = "quantspec,quantspec-kv,quantspec-weights,streamingllm,snapkv"
    m.conditions = (f"Acceptance: {m.large_model_words()}, {count} long prompt{'s' if count > 1 else ''}. Costs: caches of random keys and "
                    "values; heads of 64 in the same model, heads of 128 in one of random weights.")
    m.repeats = 1
    common = ["--recipes", recipes, "--contexts", lengths, "--seconds", seconds]
    folder = f"build/measure/contexts-{'quick' if m.quick else 'full'}"
    m.command(["rm", "-rf", folder])
    output = m.json(m.bench("context", m.large_model(), *common, "--prompts", m.long_prompts(count), "-n", "48" if m.quick else "96", "-o",
                            folder))
    for of in output["acceptance"]:
        for depth, kept in enumerate(of["survival_by_depth"][:6]):
            m.record({"recipe": of["recipe"], "depth": depth + 1}, kept=kept)
    record_contexts(m, output, 64)
    saved = m.recipe("acceptance", "")
    with open(saved, "w", encoding="utf-8") as file:
        json.dump(output, file)
    record_contexts(m, m.json(m.bench("context", m.random_model(), *common, "--acceptance", saved)), 128)


def record_contexts(m, output, heads):
    for result in output["results"]:
        m.record({"heads": heads, "context": result["context"], "recipe": result["recipe"]}, speedup=result["speedup"],
                 length=result["length"], seconds_plain=result["seconds_plain"], cache_bytes=result["cache_bytes"],
                 plain_cache_bytes=result["plain_cache_bytes"])


@measurement("bild, the lossy recipe: quality against speed")
def bild(m):
    thresholds, rollbacks, limit, tokens = ("0.3,0.9", "1,10", "1", "32") if m.quick else ("0.3,0.6,0.9", "1,3,10", "3", "48")
    m.conditions = f"{m.large_model_words().capitalize()} and the small draft model, {limit} prompts of code, {tokens} tokens each, temperature 0."
    folder = "build/measure/bild"
    command = m.bench("sweep", m.large_model(), "--recipe", "bild", "--draft-model", m.draft_model(), "--prompts",
                      m.prompts("code")["code"], "--limit", limit, "-n", tokens, "--thresholds", thresholds, "--rollbacks", rollbacks, "-o",
                      folder)
    m.repeats = 1
    m.command(["rm", "-rf", folder])
    output = m.json(command)
    m.record({"recipe": "plain"}, perplexity=output["plain"]["perplexity"], tokens_per_second=output["plain"]["tokens_per_second"])
    for result in output["results"]:
        m.record({"threshold": result["threshold"], "rollback": result["rollback"]}, speedup=result["speedup"],
                 agreement=result["agreement"], perplexity=result["perplexity"], fallbacks=result["fallback_percent"] / 100,
                 rollbacks=result["rollback_percent"] / 100)


@measurement("auto on prompts that drafts can hardly guess")
def hard_prompts(m):
    limit, tokens = (1, "24") if m.quick else (6, "32")
    m.conditions = f"{m.large_model_words().capitalize()}, {limit} prompt{'s' if limit > 1 else ''} of each kind, {tokens} tokens each."
    code = m.prompts("code")["code"]
    for kind, source in (("shuffled", m.text()), ("short", code)):
        path = f"build/measure/prompts/hard-{kind}.jsonl"
        with open(path, "w", encoding="utf-8") as out:
            m.command(["scripts/hard-prompts", kind, source], stdout=out)
        for temperature in (0, 1.5):
            command = m.bench("decode", m.large_model(), "--recipes", "auto", "--prompts", path, "--limit", str(limit), "-n", tokens,
                              "--ignore-eos", "--temperature", str(temperature))
            for output in m.each(command):
                result = next(of for of in output["results"] if of["recipe"] == "auto")
                m.record({"prompts": kind, "temperature": temperature}, speedup=result["speedup"], accepted=result["acceptance_rate"])


@measurement("the agent around a scripted model, beside LLMCompiler's own figures, on a simulated clock")
def agent(m):
    m.conditions = ("A scripted model of 60 tokens a second that reads 2,000 prompt tokens a second, searches of 0.61 s (the slowest of eight: "
                    "1.13 s), computations of 2 s; every machine gives these numbers. In brackets what the thesis measured with GPT models, or "
                    "the formula says.")
    m.repeats = 1
    for line in m.json(m.bench("agent", "--simulated", "--data", m.agent_data()), lines=True):
        numbers = {name: line["seconds"].get(name) for name in ("react", "parallel", "compiler", "tree_of_thoughts", "one_by_one", "calls_alone")}
        numbers |= {"speedup": line["speedup"], "speedup_thesis": line["thesis"]["speedup"]}
        if "d4" in line:
            numbers |= {f"tokens_{name}": round(line["prompt_tokens"][name]) for name in ("react", "compiler")}
            numbers |= {f"tokens_{name}_thesis": line["thesis"]["prompt_tokens"][name] for name in ("react", "compiler")}
            for name in ("input_reduced", "streaming"):
                numbers |= {name: line[name], f"{name}_thesis": line["thesis"][name]}
            for name in ("d4", "d5", "d6"):
                numbers |= {name: line[name]["measured"], f"{name}_formula": round(line[name]["formula"], 2)}
            numbers |= {"d3_as_printed": line["d3_as_printed"], "worst": line["worst_against_formula"]}
        else:
            numbers |= {"solved": line["solved"], "same_answers": line["same_answers"], "hands": line["hands"],
                        "speedup_of_calls": line["speedup_of_calls"]}
        m.record({"set": line["set"], "questions": line["questions"]},
                 **{name: number for name, number in numbers.items() if number is not None})


@measurement("plans of the default model, held to the agent's grammar")
def agent_plans(m):
    m.conditions = ("Plans that the default model wrote for a hundred questions of ParallelQA as a run of the agent asks for them, at "
                    "temperature 0 and at 1, each with plain and with speculative decoding.")
    m.repeats = 1
    line = m.json(m.bench("agent", "--plans", m.model(), "--data", m.agent_data()))
    m.record({"questions": line["plans"] // 2},
             **{name: line[name] for name in ("plans", "valid", "same", "calls", "most_calls", "longest_prompt", "tokens", "structure_share")})
