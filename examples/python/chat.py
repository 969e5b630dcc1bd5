#!/usr/bin/env python3
"""Holds a conversation: every line of standard input is a message, and its reply is written as it comes into being.
Ctrl-C ends a reply early. The recipe is `auto` if none is named; no lossless one changes a byte:

    chat.py MODEL [RECIPE]
"""

import sys

import verbatim


def reply(conversation, message):
    stream = conversation.reply(message, stream=True, max_tokens=200)
    try:
        for piece in stream:
            print(piece, end="", flush=True)
    except KeyboardInterrupt:
        stream.cancel()
    print()
    # What was said until now is part of the conversation, also where it was interrupted.
    result = stream.result()
    print(f"{result.finish_reason} after {len(result.tokens)} tokens", file=sys.stderr)


def main(path, recipe="auto"):
    with verbatim.Model.load(path, recipe) as model:
        conversation = model.conversation()
        for line in sys.stdin:
            reply(conversation, line.rstrip("\n"))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except verbatim.Error as error:
        print(f"chat.py: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
