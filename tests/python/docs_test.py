"""What docs/python.md shows does what it says."""

import os
import re
import tempfile
import unittest

import support
from support import REPOSITORY, needs_numpy

import verbatim

PAGE = (REPOSITORY / "docs" / "python.md").read_text()


class Docs(unittest.TestCase):
    @needs_numpy
    def test_the_blocks_of_the_page_run_one_after_the_other(self):
        blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
        self.assertGreater(len(blocks), 6)
        names = {}
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                os.symlink(REPOSITORY / "models", "models")
                for block in blocks:
                    exec(compile(block, "docs/python.md", "exec"), names)
            finally:
                os.chdir(here)
                names["model"].close()

    def test_the_page_names_what_there_is(self):
        for name in re.findall(r"`verbatim\.([A-Za-z_]+)", PAGE):
            self.assertTrue(hasattr(verbatim, name) or name == "transformers", name)
        for name in re.findall(r"`model\.([a-z_]+)\(", PAGE):
            self.assertTrue(hasattr(verbatim.Model, name), name)
        for name in re.findall(r"stats\.([a-z_]+)", PAGE):
            self.assertTrue(hasattr(verbatim.Stats, name), name)


if __name__ == "__main__":
    support.main()
