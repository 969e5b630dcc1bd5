#!/usr/bin/env python3
"""Continues several texts at once, which share the passes of the model, and prints a line for each; then once more by
coroutines, which changes no byte:

    batch.py MODEL PROMPT...
"""

import asyncio
import sys

import verbatim

OPTIONS = {"max_tokens": 24, "temperature": 0.8, "seed": 7}


async def by_coroutines(model, prompts):
    return await asyncio.gather(*(model.agenerate(prompt, **OPTIONS) for prompt in prompts))


def main(path, *prompts):
    with verbatim.Model.load(path, capacity=256) as model:
        results = model.batch(prompts, **OPTIONS)
        for prompt, result in zip(prompts, results):
            print(f"{prompt} -> {result.text}".replace("\n", " "))
        again = asyncio.run(by_coroutines(model, prompts))
        same = [result.raw for result in again] == [result.raw for result in results]
        print("the texts of coroutines are", "the same" if same else "different")
        passes = model.stats.whole_model
        print(f"{passes.rows / passes.count:.1f} rows per pass", file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except verbatim.Error as error:
        print(f"batch.py: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
