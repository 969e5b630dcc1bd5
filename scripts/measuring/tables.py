"""The tables of the pages: which measurement each shows, in which rows and columns.

A table has one group of columns for each machine, or one block for each where a group would be too wide. The order of
rows is the order in which they were first measured.
"""

import dataclasses
import re
import statistics
import textwrap
from typing import Callable

from measuring import results
from measuring.results import middle, spread


def fixed(digits):
    return lambda value: f"{value:.{digits}f}"


def general(value):
    return f"{value:g}"


def percent(digits=0):
    return lambda value: f"{100 * value:.{digits}f} %"


def milliseconds(value):
    return f"{1000 * value:.2f} ms" if value < 0.01 else f"{1000 * value:.0f} ms"


def size(value):
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB" if value >= 1e8 else f"{value / 1e6:.1f} MB"


def code(value):
    return f"`{value}`" if value and not str(value).startswith("*") else str(value)


def seconds(value):
    return f"{value:.2f} s"


def times(digits):
    return lambda value: f"{value:.{digits}f}×"


def thousands(value):
    return f"{value:,}"


def signed(digits=1):
    return lambda value: f"{100 * value:+.{digits}f} %"


def plain(value):
    return str(value)


@dataclasses.dataclass
class Row:
    """A field that names rows, and how it is shown."""
    field: str
    heading: str
    show: Callable = plain


@dataclasses.dataclass
class Column:
    """Numbers of one kind: those of the records in which the fields of `where` have these values."""
    heading: str
    numbers: str
    show: Callable
    where: dict = dataclasses.field(default_factory=dict)
    beside: str = ""  # a field of the same record that follows in brackets


@dataclasses.dataclass
class Table:
    measurement: str
    rows: list
    columns: Callable  # from the records to the columns
    blocks: bool = False
    only: Callable = lambda record: True
    brief: bool = False  # a caption without all of the conditions
    derive: Callable = lambda records: records  # from the records to those that the table shows


def always(*columns):
    return lambda records: list(columns)


def across(field, make):
    """The columns that `make` gives for every value that the field has."""
    return lambda records: [column for value in distinct(records, field) for column in make(value)]


def distinct(records, *fields):
    found = []
    for record in records:
        value = tuple(record.get(field) for field in fields)
        value = value if len(fields) > 1 else value[0]
        if value is not None and value not in found:
            found.append(value)
    return found


def cell(records, row, key, column):
    for record in records:
        if all(record.get(of.field) == value for of, value in zip(row, key)) and \
                all(record.get(field) == value for field, value in column.where.items()) and record.get(column.numbers) is not None:
            beside = f" ({middle(record[column.beside]):g})" if column.beside in record else ""
            return column.show(middle(record[column.numbers])) + beside
    return ""


def lines_of(headings, alignment, body):
    rule = "|" + "|".join(alignment) + "|"
    return ["| " + " | ".join(headings) + " |", rule, *("| " + " | ".join(cells) + " |" for cells in body)]


def records_of(table, result):
    return table.derive([record for record in result["values"] if table.only(record)])


def grouped(table, found):
    """One table, in which every machine has a group of columns."""
    records = {name: records_of(table, result) for name, result in found.items()}
    columns = [(name, column) for name in found for column in table.columns(records[name])]
    keys = []
    for name in found:
        for record in records[name]:
            key = tuple(record.get(row.field) for row in table.rows)
            if key not in keys and None not in key:
                keys.append(key)
    first, second = [row.heading for row in table.rows], ["" for _ in table.rows]
    seen = set()
    for name, column in columns:
        first.append("" if name in seen else found[name]["title"])
        second.append(column.heading)
        seen.add(name)
    alignment = ["---" if row.show in (code, plain) else "--:" for row in table.rows] + ["--:" for _ in columns]
    body = [second] + [[row.show(value) for row, value in zip(table.rows, key)] +
                       [cell(records[name], table.rows, key, column) for name, column in columns] for key in keys]
    return lines_of(first, alignment, body)


def in_blocks(table, found):
    """One table for every machine, under its name."""
    lines = []
    for name, result in found.items():
        records = records_of(table, result)
        columns = table.columns(records)
        keys = [key if isinstance(key, tuple) else (key,) for key in distinct(records, *(row.field for row in table.rows))]
        body = [[row.show(value) for row, value in zip(table.rows, key)] +
                [cell(records, table.rows, key, column) for column in columns] for key in keys if None not in key]
        alignment = ["---" if row.show in (code, plain) else "--:" for row in table.rows] + ["--:" for _ in columns]
        lines += [f"**{result['title']}**", "",
                  *lines_of([row.heading for row in table.rows] + [column.heading for column in columns], alignment, body), ""]
    return lines[:-1]


def caption(table, found, root):
    """Where the numbers come from: for every machine the date, version, memory and conditions, and the file that has all."""
    lines = []
    for name, result in found.items():
        widths = [spread(number) for record in result["values"] if table.only(record) for number in record.values()]
        widths = [width for width in widths if width is not None]
        memory = memory_speed(result)
        parts = [result["date"], f"version `{result['version']}`"]
        if memory:
            parts.append(f"memory read at {memory if isinstance(memory, str) else f'{memory:.0f}'} GB/s")
        if widths:
            typical = 100 * sorted(widths)[len(widths) // 2]
            parts.append(f"medians of {max_runs(result)} runs, from which the runs typically lie {typical:.0f} % away")
        if result["quick"]:
            parts.append("a quick measurement")
        if result["transcribed"]:
            parts.append("transcribed from an earlier page")
        conditions = re.split(r"[;.] ", result["conditions"])[0].rstrip(".") + "." if table.brief else result["conditions"]
        text = f"- {result['title']}: {', '.join(parts)}. {conditions} "
        text += f"[All numbers]({root}results/{name}/{result['measurement']}.json)."
        lines += textwrap.wrap(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return lines


def memory_speed(result):
    """The GB/s at which memory was read: the median of the sweeps within the runs, or else of the one before them."""
    outputs = [run.get("output") for run in result.get("runs", [])]
    sweeps = [output["read_bandwidth_gbs"] for output in outputs if isinstance(output, dict) and "read_bandwidth_gbs" in output]
    return statistics.median(sweeps) if sweeps else result["machine"].get("read_bandwidth_gbs")


def max_runs(result):
    return max((number["runs"] for record in result["values"] for number in record.values() if isinstance(number, dict)), default=1)


def render(name, root, captioned):
    """The lines of a table as the results have it; `root` is the way from the page to docs/, and `captioned` are the
    measurements that the page has said the origin of already."""
    table = TABLES[name]
    found = {}
    for machine in results.machines():
        result = results.load(machine, table.measurement)
        if result and any(table.only(record) for record in result["values"]):
            found[machine] = result
    if not found:
        return [f"Nothing was measured yet: `scripts/measure {table.measurement}`."]
    lines = in_blocks(table, found) if table.blocks else grouped(table, found)
    if table.measurement in captioned:
        return lines
    captioned.add(table.measurement)
    return [*lines, "", *caption(table, found, root)]


def kind_and_temperature(make, temperatures=(0, 0.8)):
    """Columns for every kind of prompt at every temperature."""
    def columns(records):
        kinds = distinct(records, "prompts")
        return [column for temperature in temperatures for kind in kinds
                if any(of["temperature"] == temperature and of["prompts"] == kind for of in records)
                for column in make({"prompts": kind, "temperature": temperature}, f"{kind}, T = {temperature}")]
    return columns


def texts(make):
    return across("text", make)


def excess(text, heading="nats above `bf16`"):
    return [Column(heading, "excess", fixed(4), {"text": text}), Column("±", "error", fixed(4), {"text": text}),
            Column("divergence", "divergence", fixed(4), {"text": text})]


EXCESS_COLUMNS = texts(lambda text: excess(text, f"{text}: nats above `bf16`"))


def excess_and_bits(records):
    return [Column("bits per weight", "bits", fixed(2)), *EXCESS_COLUMNS(records)]


def of_own_kind(records):
    """The records with what a text's sensitivities are of by one name for all texts; those of other texts are left out."""
    return [{**of, "of": "none" if of["of"] == "none" else "its own kind"} for of in records if of["of"] == "none" or of["text"].startswith(of["of"])]


def closed(records):
    """What sensitivities of a text of the same kind take of the distance to BF16 that there is without any."""
    alike = {(of["reading"], of["split"], of["text"]): of for of in records if of["of"] == "none"}
    for of in records:
        before = alike[of["reading"], of["split"], of["text"]]
        if of["text"].startswith(of["of"]):
            yield {**{field: of[field] for field in ("reading", "split", "text")},
                   **{f"{field}_{what}": middle(record[field]) for what, record in (("before", before), ("after", of))
                      for field in ("excess", "divergence")},
                   **{f"{field}_closed": 1 - middle(of[field]) / middle(before[field]) for field in ("excess", "divergence")
                      if middle(before[field]) > 0}}


BATCH_COLUMNS = always(
    Column("tokens/s", "tokens_per_second", fixed(1)), Column("over the baseline", "speedup", fixed(2)), Column("accepted", "accepted", fixed(2)),
    Column("passes that verify", "verify_count", plain), Column("rows", "verify_rows", fixed(1)), Column("take", "verify_seconds", milliseconds),
    Column("passes that draft", "draft_count", plain), Column("rows", "draft_rows", fixed(1)), Column("take", "draft_seconds", milliseconds))


def speed_columns(where, heading):
    return [Column(heading, "speedup", fixed(2), where)]


AGENT_ROWS = [Row("set", "set"), Row("questions", "questions", thousands)]

TABLES = {
    "demo": Table(
        "demo", [Row("kind", "prompt"), Row("temperature", "T", general)],
        always(Column("plain, tokens/s", "plain", fixed(0)), Column("`auto`, tokens/s", "speculative", fixed(0)), Column("ratio", "ratio", fixed(2)),
               Column("accepted", "accepted", percent()))),
    "decode-speeds": Table(
        "decode-speeds", [Row("recipe", "recipe", code)],
        lambda records: [Column("weights", "weight_bytes", size), *kind_and_temperature(speed_columns)(records)], blocks=True),
    "decode-speeds-short": Table(
        "decode-speeds", [Row("recipe", "recipe", code)], kind_and_temperature(speed_columns, (0,)),
        only=lambda of: of["recipe"] in ("plain", "ml-specqd", "speq", "nested", "auto") and of["temperature"] == 0, brief=True),
    "acceptance": Table(
        "acceptance", [Row("recipe", "recipe", code)],
        lambda records: [Column("weights", "weight_bytes", size), *kind_and_temperature(
            lambda where, heading: [Column(f"{heading}: accepted", "accepted", fixed(2), where),
                                    Column("per pass", "per_pass", fixed(2), where)])(records)], blocks=True),
    "default-model": Table(
        "default-model", [Row("isa", "kernels", code)],
        across("recipe", lambda recipe: [Column(f"`{recipe}`, tokens/s", "tokens_per_second", fixed(0), {"recipe": recipe})] +
               ([Column("over `plain`", "speedup", fixed(2), {"recipe": recipe})] if recipe != "plain" else []))),
    "passes": Table(
        "passes", [Row("reading", "reading", code)],
        always(Column("one row", "seconds", milliseconds, {"rows": 1}), Column("of the reads", "fraction", fixed(2), {"rows": 1}),
               Column("8 rows to one", "ratio", fixed(2), {"rows": 8})), only=lambda of: "reading" in of),
    "prefill": Table(
        "passes", [Row("prefill", "tokens of the prompt", thousands)],
        always(Column("tokens/s", "tokens_per_second", fixed(0)), Column("TFLOP/s", "tflops", fixed(2))), only=lambda of: "prefill" in of),
    "files": Table(
        "files", [Row("isa", "kernels", code), Row("file", "weights")],
        always(Column("one row", "seconds", milliseconds), Column("of the reads", "fraction", fixed(2)), Column("8 rows to one", "ratio", fixed(2)),
               Column("prompt, tokens/s", "prefill", fixed(0))), blocks=True),
    "file-drafts": Table(
        "file-drafts", [Row("file", "weights"), Row("recipe", "recipe", code)],
        always(Column("memory of the weights", "weight_bytes", size), Column("accepted", "accepted", fixed(2)), Column("over plain", "speedup", fixed(2))), blocks=True),
    "fewer-experts": Table(
        "fewer-experts", [Row("reading", "reading", code), Row("experts", "experts for a token")],
        always(Column("weights of one row", "weight_bytes", size), *[Column(f"{rows} row{'s' if rows > 1 else ''}", f"rows{rows}", milliseconds)
                                                                      for rows in (1, 2, 4, 8)]), blocks=True),
    "kernels": Table(
        "kernels", [Row("reading", "reading", code)],
        across("rows", lambda rows: [Column(f"{rows} row{'s' if rows > 1 else ''}", "fraction", fixed(2), {"rows": rows})])),
    "attention": Table(
        "attention", [Row("context", "context", thousands), Row("group", "query heads per key-value head", thousands), Row("cache", "cache", code),
                      Row("reading", "reading")],
        always(Column("time", "seconds", milliseconds), Column("of reads", "fraction", fixed(2)), Column("over BF16", "speedup", fixed(2)))),
    "cache-quality": Table(
        "cache-quality", [Row("cache", "cache", code), Row("reading", "reading")],
        texts(lambda text: [Column(f"{text}: excess perplexity", "excess_nll", lambda value: f"{100 * value:+.3f} %", {"text": text}),
                            Column("±", "excess_standard_error", percent(3), {"text": text}),
                            Column("KL divergence, 10⁻³ nats", "divergence", lambda value: f"{1000 * value:.3f}", {"text": text}),
                            Column("±", "divergence_standard_error", lambda value: f"{1000 * value:.3f}", {"text": text}),
                            Column("agreement", "agreement", fixed(4), {"text": text})]), blocks=True),
    "format-quality": Table(
        "format-quality", [Row("row", "format"), Row("reading", "reading", code)],
        lambda records: [Column("bits per weight", "bits", fixed(2)), *texts(
            lambda text: [Column(text, "perplexity", fixed(3), {"text": text}), Column("× bf16", "ratio", fixed(4), {"text": text})])(records),
                         Column("agreement", "agreement", fixed(3)), Column("overlap", "overlap", fixed(3))], blocks=True),
    "schemes": Table(
        "schemes", [Row("scheme", "scheme", code), Row("reading", "reading", code)],
        lambda records: [*texts(lambda text: [Column(text, "perplexity", fixed(3), {"text": text})])(records),
                         Column("next tokens", "agreement", fixed(3)), Column("continuations", "continuations", fixed(3))], blocks=True),
    "sensitivities": Table(
        "sensitivities", [Row("reading", "format", code), Row("split", "sparse"), Row("of", "sensitivities of")],
        lambda records: [Column("bits", "bits", fixed(2)), *texts(
            lambda text: [Column(text, "perplexity", fixed(3), {"text": text}), *excess(text)])(records)], blocks=True),
    "sensitivities-short": Table(
        "sensitivities", [Row("reading", "format", code), Row("split", "sparse"), Row("of", "sensitivities of")],
        lambda records: [Column("bits per weight", "bits", fixed(2)), *texts(lambda text: excess(text, f"{text}: nats above `bf16`"))(records)],
        blocks=True, only=lambda of: of["split"] != "0.05 %", brief=True),
    "sensitivities-closed": Table(
        "sensitivities", [Row("text", "text"), Row("reading", "format", code), Row("split", "sparse")],
        always(Column("nats above `bf16`, alike", "excess_before", fixed(4)), Column("by sensitivities", "excess_after", fixed(4)),
               Column("closed", "excess_closed", percent()), Column("divergence, alike", "divergence_before", fixed(4)),
               Column("by sensitivities", "divergence_after", fixed(4)), Column("closed", "divergence_closed", percent())),
        blocks=True, only=lambda of: of["reading"].startswith("squeeze"), derive=lambda records: list(closed(records))),
    "sparse-parts": Table(
        "sparse-parts", [Row("of", "sensitivities of"), Row("split", "sparse")],
        always(Column("bits per weight", "bits", fixed(2)), Column("of the weights", "weights", percent(2)),
               Column("of the sensitivity", "sensitivity", percent(1)), Column("in the fullest hundredth of the columns", "fullest", percent(1)),
               Column("most in a column", "most", plain)), blocks=True),
    "sensitivity-samples": Table("sensitivity-samples", [Row("samples", "samples")], EXCESS_COLUMNS, blocks=True),
    "sensitive-shares": Table("sensitive-shares", [Row("share", "share kept apart", percent(2))], EXCESS_COLUMNS, blocks=True),
    "rounding-schemes": Table(
        "rounding-schemes", [Row("scheme", "scheme", code), Row("levels", "bits of a weight"), Row("of", "calibrated on")],
        lambda records: [column for text in distinct(records, "text") for column in
                         (Column(text, "perplexity", fixed(3), {"text": text}), *excess(text))], blocks=True),
    "uniform-tables": Table(
        "uniform-tables", [Row("table_bits", "bits of a code"), Row("split", "sparse"), Row("values", "tables")], excess_and_bits, blocks=True),
    "grouped-tables": Table(
        "grouped-tables", [Row("group", "inputs that share a table"), Row("split", "sparse")], excess_and_bits, blocks=True),
    "sparsity-levels": Table(
        "sparsity-levels", [Row("table_bits", "bits of a code"), Row("split", "sparse")], excess_and_bits, blocks=True),
    "activation-measure": Table(
        "activation-measure", [Row("split", "sparse"), Row("measure", "squares of")], excess_and_bits, blocks=True),
    "two-bits": Table("two-bits", [Row("split", "sparse"), Row("of", "sensitivities of")], excess_and_bits, blocks=True, derive=of_own_kind),
    "sensitivity-cost": Table(
        "sensitivity-cost", [Row("measure", "measure")],
        always(Column("seconds", "seconds", fixed(0)), Column("peak memory, GiB", "gib", fixed(2)))),
    "squeeze-kernels": Table(
        "squeeze-kernels", [Row("format", "format", code)],
        across("rows", lambda rows: [Column(f"{rows} row{'s' if rows > 1 else ''}", "seconds", milliseconds, {"rows": rows}),
                                     Column("of reads", "fraction", fixed(2), {"rows": rows})]), blocks=True),
    "throughput": Table("throughput", [Row("batch", "batch", thousands), Row("recipe", "recipe", code)], BATCH_COLUMNS, blocks=True),
    "qspec-batches": Table(
        "qspec-batches", [Row("scheme", "scheme", code), Row("batch", "batch", thousands), Row("recipe", "recipe", code)],
        always(Column("tokens/s", "tokens_per_second", fixed(1)), Column("over `w4a16`", "speedup", fixed(2)),
               Column("passes that draft", "draft_count", plain), Column("rows that verify", "verify_rows", fixed(1)),
               Column("take", "verify_seconds", milliseconds)), blocks=True),
    "drafting": Table(
        "drafting", [Row("isa", "kernels", code), Row("batch", "batch", thousands)],
        always(Column("`w4a16`", "seconds_plain", milliseconds), Column("of peak", "peak_plain", percent()),
               Column("`w4a4`", "seconds_draft", milliseconds), Column("of peak", "peak_draft", percent()),
               Column("verifies drafts of 3", "seconds_verify", milliseconds), Column("gains from an acceptance of", "break_even", fixed(2)),
               Column("speed at 0.8", "speed_at_0.8", fixed(2)), Column("at 0.9", "speed_at_0.9", fixed(2))), blocks=True),
    "draft-lengths": Table(
        "draft-lengths", [Row("text", "text"), Row("temperature", "T", general), Row("recipe", "recipe", code)],
        across("length", lambda length: [Column(str(length), "accepted", fixed(2), {"length": length})]), blocks=True),
    "contexts-acceptance": Table(
        "contexts", [Row("recipe", "recipe", code)],
        across("depth", lambda depth: [Column(str(depth), "kept", fixed(2), {"depth": depth})]), blocks=True, only=lambda of: "depth" in of),
    **{f"contexts-heads-of-{heads}": Table(
        "contexts", [Row("context", "context", thousands)],
        lambda records: [Column("plain, a token", "seconds_plain", milliseconds),
                         *across("recipe", lambda recipe: [Column(f"`{recipe}`", "speedup", fixed(2), {"recipe": recipe}, "length")])(records),
                         Column("cache", "cache_bytes", size), Column("BF16 cache", "plain_cache_bytes", size)],
        blocks=True, only=lambda of, heads=heads: of.get("heads") == heads) for heads in (64, 128)},
    "bild": Table(
        "bild", [Row("threshold", "fallback threshold", general), Row("rollback", "rollback threshold", general)],
        always(Column("speed over plain", "speedup", fixed(2)), Column("agreement", "agreement", fixed(2)), Column("perplexity", "perplexity", fixed(3)),
               Column("fallbacks", "fallbacks", percent(1)), Column("rollbacks", "rollbacks", percent(1))), only=lambda of: "threshold" in of),
    "agent": Table(
        "agent", AGENT_ROWS,
        always(Column("ReAct†", "react", seconds), Column("parallel", "parallel", seconds), Column("compiler", "compiler", seconds),
               Column("over ReAct† (thesis)", "speedup", times(2), beside="speedup_thesis"),
               Column("streaming gains (thesis)", "streaming", times(2), beside="streaming_thesis"),
               Column("tokens in, ReAct† (thesis)", "tokens_react", thousands, beside="tokens_react_thesis"),
               Column("compiler (thesis)", "tokens_compiler", thousands, beside="tokens_compiler_thesis"),
               Column("fewer (thesis)", "input_reduced", times(1), beside="input_reduced_thesis")),
        blocks=True, only=lambda of: "react" in of),
    "agent-game": Table(
        "agent", AGENT_ROWS,
        always(Column("Tree of Thoughts", "tree_of_thoughts", seconds), Column("planned, one call at a time", "one_by_one", seconds),
               Column("compiler", "compiler", seconds), Column("over Tree of Thoughts (thesis)", "speedup", times(2), beside="speedup_thesis"),
               Column("calls alone, side by side", "calls_alone", seconds), Column("over Tree of Thoughts", "speedup_of_calls", times(2)),
               Column("solved", "solved", plain)), blocks=True, only=lambda of: "one_by_one" in of),
    "agent-formulas": Table(
        "agent", AGENT_ROWS,
        always(Column("D.4: whole plans over ReAct†", "d4", times(2), beside="d4_formula"),
               Column("D.5: a model that takes no time", "d5", times(2), beside="d5_formula"),
               Column("D.6: calls that take no time", "d6", times(2), beside="d6_formula"),
               Column("D.3 as printed", "d3_as_printed", seconds),
               Column("runs off D.1 to D.3, at most", "worst", percent(2))), blocks=True, only=lambda of: "d4" in of),
    "area": Table(
        "area", [Row("design", "module")],
        always(Column("area in NAND2", "nand2", fixed(0)), Column("of the PE", "of_pe", fixed(3))), blocks=True, only=lambda of: "design" in of),
    "area-ratios": Table(
        "area", [Row("ratio", "ratio")], always(Column("value (paper)", "value", fixed(3), beside="paper")), blocks=True,
        only=lambda of: "ratio" in of),
    "speq-table-three": Table(
        "speq-claims", [Row("model", "model"), Row("task", "task")],
        always(Column("L", "length", fixed(2)), Column("r", "acceptance", fixed(3)), Column("paper", "paper", fixed(2)),
               Column("simulated", "simulated", fixed(2)), Column("deviation", "deviation", signed()), Column("Td/Tar", "draft_time", fixed(3)),
               Column("Tv/Tar", "verify_time", fixed(3)), Column("fitted", "fitted", fixed(2))), blocks=True, only=lambda of: "task" in of),
    "speq-gains": Table(
        "speq-claims", [Row("over", "over", code)],
        always(Column("paper", "paper", fixed(2)), Column("simulated", "simulated", fixed(2)), Column("deviation", "deviation", signed()),
               Column("energy, paper", "energy_paper", fixed(2)), Column("the memory's", "energy_memory", fixed(2)),
               Column("the chip's", "energy_chip", fixed(2))), blocks=True, only=lambda of: "over" in of),
    "speq-map": Table(
        "speq-claims", [Row("mapping", "mapping")],
        across("bandwidth", lambda bandwidth: [Column(f"{bandwidth:g} GB/s: Td/Tar", "draft_time", fixed(3), {"bandwidth": bandwidth}),
                                               Column("Tv/Tar", "verify_time", fixed(3), {"bandwidth": bandwidth})]), blocks=True,
        only=lambda of: of.get("bandwidth") in (51.2, 256.0, 1024.0)),
    "speq-assumptions": Table(
        "speq-claims", [Row("changed", "changed")],
        always(Column("speedup", "speedup", fixed(3)), Column("Td/Tar", "draft_time", fixed(3)), Column("Tv/Tar", "verify_time", fixed(3))),
        blocks=True, only=lambda of: "changed" in of),
    "speq-traffic": Table(
        "speq-claims", [Row("traffic", "model")],
        always(Column("weights among the bytes read", "weights", percent(1)), Column("paper", "paper", percent(1))), blocks=True,
        only=lambda of: "traffic" in of),
    **{f"draft-thresholds-{name}": Table(
        "draft-thresholds", [Row("threshold", "threshold", fixed(1))],
        across("length", lambda length, shape=shape: [Column(f"L = {length}", shape, fixed(2), {"length": length})]), blocks=True)
       for name, shape in (("llama", "llama3.1-8b"), ("vicuna", "vicuna-7b"))},
    "draft-thresholds": Table(
        "draft-thresholds", [Row("threshold", "threshold", fixed(1))],
        across("length", lambda length: [Column(f"L = {length}: drafted a step", "draft_length", fixed(2), {"length": length}),
                                         Column("accepted", "acceptance", percent(), {"length": length}),
                                         Column("tokens a step", "accepted_length", fixed(2), {"length": length})]), blocks=True),
    "agent-plans": Table(
        "agent-plans", [Row("questions", "questions", thousands)],
        always(Column("plans", "plans", thousands), Column("valid", "valid", thousands), Column("same bytes plain and speculative", "same", thousands),
               Column("calls", "calls", thousands), Column("at most in a plan", "most_calls", plain), Column("tokens", "tokens", thousands),
               Column("drafted by the grammar", "structure_share", percent(1))), blocks=True),
    "hard-prompts": Table(
        "hard-prompts", [Row("prompts", "prompts"), Row("temperature", "T", general)],
        always(Column("speed over plain", "speedup", fixed(2)), Column("drafts accepted", "accepted", fixed(2)))),
}
