"""The figures of the pages, drawn by matplotlib from the results: docs/figures/<name>.svg, the same bytes for the same numbers."""

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (the kind of output has to be chosen first)

from measuring import results  # noqa: E402
from measuring.results import middle  # noqa: E402

plt.rcParams.update({"svg.hashsalt": "verbatim", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10, "axes.spines.top": False,
                     "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3, "figure.facecolor": "white", "legend.frameon": False})


def found(measurement, only=lambda of: True):
    """The records of every machine that has the measurement."""
    for machine in results.machines():
        result = results.load(machine, measurement)
        records = [of for of in result["values"] if only(of)] if result else []
        if records:
            yield machine, result["title"], records


def side_by_side(groups):
    figure, axes = plt.subplots(1, len(groups), figsize=(1.2 + 4.2 * len(groups), 3.4), squeeze=False, layout="constrained")
    return figure, axes[0]


def distinct(records, field):
    return list(dict.fromkeys(of[field] for of in records if field in of))


def decode_speeds():
    """Speed over plain decoding by recipe and kind of text, a panel for each machine."""
    groups = list(found("decode-speeds", lambda of: of["temperature"] == 0 and of.get("speedup")))
    if not groups:
        return None
    figure, panels = side_by_side(groups)
    for axes, (_, title, records) in zip(panels, groups):
        recipes = [name for name in ("speq", "ml-specqd", "nested", "auto") if name in distinct(records, "recipe")]
        kinds = distinct(records, "prompts")
        width = 0.8 / len(kinds)
        for at, kind in enumerate(kinds):
            speeds = [next((middle(of["speedup"]) for of in records if of["recipe"] == recipe and of["prompts"] == kind), 0)
                      for recipe in recipes]
            axes.bar([x + (at - (len(kinds) - 1) / 2) * width for x in range(len(recipes))], speeds, width, label=kind)
        axes.axhline(1, color="black", linewidth=1)
        axes.set_xticks(range(len(recipes)), recipes)
        axes.set_title(title, fontsize=10)
        axes.grid(axis="x", visible=False)
        axes.legend(fontsize=8, ncols=len(kinds), loc="upper left")
    panels[0].set_ylabel("speed over plain decoding (1)")
    return figure


def contexts(heads):
    """Speed over plain decoding by the length of the context, a curve for each recipe."""
    groups = list(found("contexts", lambda of: of.get("heads") == heads))
    if not groups:
        return None
    figure, panels = side_by_side(groups)
    for axes, (_, title, records) in zip(panels, groups):
        for recipe in distinct(records, "recipe"):
            points = sorted((of["context"], middle(of["speedup"])) for of in records if of["recipe"] == recipe)
            axes.plot([x for x, _ in points], [y for _, y in points], marker="o", markersize=3, label=recipe)
        axes.axhline(1, color="black", linewidth=1)
        axes.set_xscale("log", base=2)
        ticks = sorted(distinct(records, "context"))
        axes.set_xticks(ticks, [f"{tick // 1024}k" for tick in ticks])
        axes.set_xlabel("tokens of context")
        axes.set_title(f"{title}, heads of {heads}", fontsize=10)
    panels[0].set_ylabel("speed over plain decoding")
    panels[0].legend(fontsize=8)
    return figure


def drafting():
    """What drafts of four bits gain by the size of the batch, a curve for each instruction set and acceptance."""
    groups = list(found("drafting"))
    if not groups:
        return None
    figure, panels = side_by_side(groups)
    for axes, (_, title, records) in zip(panels, groups):
        for at, isa in enumerate(distinct(records, "isa")):
            for acceptance, style in (("0.8", "--"), ("0.9", "-")):
                points = [(of["batch"], middle(of[f"speed_at_{acceptance}"])) for of in records if of["isa"] == isa]
                axes.plot([x for x, _ in points], [y for _, y in points], style, color=f"C{at}", marker="o", markersize=3,
                          label=f"{isa}, {acceptance} accepted")
        axes.axhline(1, color="black", linewidth=1)
        axes.set_xscale("log", base=2)
        ticks = sorted(distinct(records, "batch"))
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_xlabel("sequences in the batch")
        axes.set_title(title, fontsize=10)
        axes.legend(fontsize=8)
    panels[0].set_ylabel("speed over w4a16")
    return figure


def bild(what, label):
    """Quality against speed: a curve for each rollback threshold along the fallback thresholds, and plain decoding as a point."""
    groups = list(found("bild"))
    if not groups:
        return None
    figure, panels = side_by_side(groups)
    for axes, (_, title, records) in zip(panels, groups):
        points = [of for of in records if "threshold" in of]
        for rollback in distinct(points, "rollback"):
            curve = sorted((of["threshold"], middle(of["speedup"]), middle(of[what])) for of in points if of["rollback"] == rollback)
            axes.plot([x for _, x, _ in curve], [y for _, _, y in curve], marker="o", markersize=3, label=f"rollback {rollback:g}")
        plain = next((of for of in records if of.get("recipe") == "plain"), {})
        axes.plot([1], [1.0 if what == "agreement" else middle(plain[what])], "k*", label="plain")
        axes.set_xlabel("speed over plain decoding")
        axes.set_title(title, fontsize=10)
        axes.legend(fontsize=8)
    panels[0].set_ylabel(label)
    return figure


def sensitivities():
    """The loss of squeeze3 against how far its predictions are from the model's own: a panel for each text, a mark for each split."""
    groups = [(title, text, [of for of in records if of["text"] == text]) for _, title, records in
              found("sensitivities", lambda of: of["reading"] == "squeeze3") for text in distinct(records, "text")]
    if not groups:
        return None
    figure, panels = side_by_side(groups)
    for axes, (title, text, records) in zip(panels, groups):
        for at, source in enumerate(distinct(records, "of")):
            for mark, split in zip("os^", distinct(records, "split")):
                for of in (of for of in records if of["of"] == source and of["split"] == split):
                    axes.errorbar(middle(of["divergence"]), middle(of["excess"]), yerr=middle(of["error"]), fmt=mark, color=f"C{at}", markersize=5,
                                  capsize=2, label=f"sensitivities: {source}" if mark == "o" else None)
        axes.axhline(0, color="black", linewidth=1)
        axes.set_xlabel("divergence from BF16, nats")
        axes.set_title(f"{text} ({title})", fontsize=9)
    panels[0].set_ylabel("nats per token above BF16")
    panels[0].legend(fontsize=8)
    return figure


def draft_thresholds():
    """SPEQ's figure 9: the simulated speed over the length of drafts and the threshold, a panel for each shape."""
    groups = list(found("draft-thresholds"))
    if not groups:
        return None
    records = groups[0][2]
    shapes = ["llama3.1-8b", "vicuna-7b"]
    lengths, thresholds = (sorted(distinct(records, field)) for field in ("length", "threshold"))
    figure, panels = side_by_side(shapes)
    for axes, shape in zip(panels, shapes):
        values = [[next(middle(of[shape]) for of in records if (of["length"], of["threshold"]) == (length, threshold)) for length in lengths]
                  for threshold in thresholds]
        highest = max(map(max, values))
        axes.imshow(values, cmap="YlGnBu", aspect="auto", origin="lower")
        for y, row in enumerate(values):
            for x, value in enumerate(row):
                axes.text(x, y, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if value > 0.8 * highest else "black")
        axes.set_xticks(range(len(lengths)), lengths)
        axes.set_yticks(range(len(thresholds)), [f"{threshold:.1f}" for threshold in thresholds])
        axes.set_xlabel("the most tokens of a draft")
        axes.set_title(f"the shape of {shape}, acceptance of models/target", fontsize=9)
        axes.grid(visible=False)
    panels[0].set_ylabel("threshold")
    return figure


FIGURES = {
    "speq-draft-thresholds": draft_thresholds,
    "sensitivities": sensitivities,
    "decode-speeds": decode_speeds,
    "quantspec-contexts": lambda: contexts(64),
    "quantspec-contexts-heads-of-128": lambda: contexts(128),
    "qspec-gains": drafting,
    "bild-agreement-by-speedup": lambda: bild("agreement", "agreement with plain decoding"),
    "bild-perplexity-by-speedup": lambda: bild("perplexity", "perplexity"),
}


def draw_all(folder):
    """Draws every figure that there are numbers for; the names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FIGURES.items():
        figure = make()
        if figure is not None:
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)
            yield f"{name}.svg"
