#!/usr/bin/env python3
# %% [markdown]
# # Which drafts are kept?
#
# A recipe drafts the next tokens with a few bits of the model, or with tokens that came before, and the model keeps
# those that it would have said itself. This plots how many of them it keeps at each depth of a draft, recipe by recipe,
# and how many tokens a pass of the model gains. The text is the same every time.
#
#     plot.py MODEL [FILE.png]

# %%
import sys

import matplotlib

matplotlib.use("agg")  # draws into a file, without a screen
import matplotlib.pyplot as plt  # noqa: E402

import verbatim  # noqa: E402

path = sys.argv[1] if len(sys.argv) > 1 else "models/target"
picture = sys.argv[2] if len(sys.argv) > 2 else "acceptance.png"
recipes = ["ngram", "ml-specqd", "nested", "speq"]
prompts = ["def fibonacci(n):", "class Stack:\n    def push(", "Question: What is 2 + 3?\nAnswer:"]

# %% [markdown]
# One model serves all recipes, if it is loaded for them. Without the prompt cache no recipe profits from another's work.

# %%
try:
    model = verbatim.Model.load(path, "plain", recipes=recipes, prompt_cache=False)
except verbatim.Error as error:
    print(f"plot.py: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
plain = [result.raw for result in model.batch(prompts, max_tokens=120)]

# %%
kept = {}
gained = {}
for recipe in recipes:
    results = model.batch(prompts, max_tokens=120, recipe=recipe)
    assert [result.raw for result in results] == plain, "a lossless recipe changes nothing"
    depths = max((result.stats.depths for result in results), key=len)
    drafted, accepted = [0] * len(depths), [0] * len(depths)
    for result in results:
        for depth, steps in enumerate(result.stats.depths):
            drafted[depth] += steps["drafted"]
            accepted[depth] += steps["accepted"]
    kept[recipe] = [a / d if d else 0.0 for a, d in zip(accepted, drafted)]
    passes = sum(result.stats.target_passes for result in results)
    gained[recipe] = sum(result.stats.generated_tokens for result in results) / passes
    stats = results[0].stats
    print(f"{recipe:10} {gained[recipe]:5.2f} tokens per pass, {stats.acceptance_rate:4.0%} of drafts kept in the first text")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for recipe, shares in kept.items():
    left.plot(range(1, len(shares) + 1), shares, marker="o", label=recipe)
left.set(xlabel="depth of the draft", ylabel="share of drafts kept", ylim=(0, 1.05), title="Kept, by depth")
left.legend()
right.bar(list(gained), list(gained.values()))
right.axhline(1, color="black", linewidth=1)
right.set(ylabel="tokens per pass", title="Gained; plain decoding has 1")
figure.savefig(picture)
print(f"wrote {picture}")
model.close()
