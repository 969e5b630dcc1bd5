"""What the scripts that measure tables for the pages share: running the program and replacing the table."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = str(ROOT / "build" / "verbatim")


def run_json(command):
    """What the program prints with --json; ends this one if it fails, as it has said why."""
    result = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(result.returncode)
    return json.loads(result.stdout)


class Place:
    """Where a page has the table of this name: between two comments."""

    def __init__(self, page, name):
        self.page = page
        self.begin = f"<!-- {name} table: begin -->"
        self.end = f"<!-- {name} table: end -->"
        self.around()

    def around(self):
        """What stands before and after the table."""
        before, begin, rest = self.page.read_text(encoding="utf-8").partition(self.begin)
        _, end, after = rest.partition(self.end)
        if not begin or not end:
            sys.exit(f"{self.page} lacks the lines {self.begin} and {self.end}, in this order")
        return before, after

    def write(self, lines):
        print("\n".join(lines), file=sys.stderr)  # what took long to measure is not lost with the page
        before, after = self.around()
        text = "\n".join([before + self.begin, "", *lines, "", self.end]) + after
        self.page.write_text(text, encoding="utf-8")
