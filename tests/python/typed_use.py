"""Uses all of the package as its stubs describe it. types_test.py checks it with mypy; nobody runs it."""

import asyncio

import numpy
from numpy.typing import NDArray

import verbatim
from verbatim.transformers import generate


def use(path: str) -> None:
    model: verbatim.Model = verbatim.Model.load(path, "auto", recipes=["plain"], max_batch=4, progress=print)
    with model:
        result: verbatim.Result = model.generate("x", max_tokens=3, temperature=0.5, stop=["a"], logit_bias={5: -1.0})
        text: str = result.text + str(result)
        raw: bytes = result.raw
        tokens: list[int] = result.tokens
        rate: float = result.stats.acceptance_rate
        drafted: int = result.stats.drafted
        lossless: bool = result.stats.lossless
        with model.generate(tokens, stream=True, schema={"type": "string"}) as stream:
            pieces: list[str] = [piece for piece in stream]
        results: list[verbatim.Result] = model.batch(["x", tokens], seed=3, priority=1)
        reply: verbatim.Result = model.chat([{"role": "user", "content": "x"}], tools=[{"type": "function"}])
        conversation: verbatim.Conversation = model.conversation("Be brief.", format="plain")
        said: str = conversation.reply("x", timeout=2.5).text + "".join(conversation.reply("y", stream=True))
        conversation.save("talk.json")
        verbatim.Conversation.restore(model, "talk.json").clear()
        with model.session(capacity=100) as session:
            said += session.generate(tokens, max_tokens=3, on_text=print).text
            session.truncate(len(session.tokens) - session.evaluated)
            session.save("x.session")
            session.restore("x.session")
            said += session.reply(conversation, "z").text
        score: verbatim.Score = model.score("x", top_logprobs=3)
        likeliest: tuple[int, float] = score.tokens[0].top[0]
        logits: NDArray[numpy.float32] = model.logits(model.tokenize("x"))
        found: int | None = model.find_token(model.piece(5))
        passes: int = model.stats.whole_model.count
        theirs: list[verbatim.Result] = generate(model, ["x"], max_new_tokens=3, do_sample=True)
        print(text, raw, rate, drafted, lossless, pieces, results, reply, said, likeliest, logits, found, passes, theirs)


async def use_later(model: verbatim.Model) -> str:
    results = await asyncio.gather(model.agenerate("x", top_k=3), model.achat([{"role": "user", "content": "x"}]))
    async with await model.agenerate("x", stream=True) as stream:
        text = "".join([piece async for piece in stream])
    return text + results[0].text + (await stream.result()).text


def errors() -> int:
    try:
        verbatim.use_portable_kernels()
    except verbatim.Error as error:
        return error.exit_code
    return len(verbatim.recipe_names()) + len(verbatim.__version__)
