"""Models of scripts/make-random-model open and say the same with drafts and without; impossible sizes are refused."""

import tempfile
import unittest
from pathlib import Path

import support
from support import PROMPTS, make_random_model, run_program

import verbatim

SIZES = ["--layers", "2", "--hidden", "64", "--heads", "4", "--kv-heads", "2", "--head-dim", "16", "--intermediate", "96"]


def make(folder, *options):
    """Make a small model in a folder, with more options than its sizes."""
    return make_random_model(folder, *SIZES, *options)


class RandomModels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_mixture_opens_and_drafts_change_no_byte(self):
        for options, kind in (([], "llama"), (["--experts", "4"], "4 of size 96, 2 for each token"),
                              (["--experts", "4", "--experts-per-token", "1"], "4 of size 96, 1 for each token")):  # fmt: skip
            folder = self.folder / ("of-" + "-".join(options))
            made = make(folder, *options)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertIn(kind, run_program("inspect", folder)[1].decode())
            texts = set()
            for recipe in ("plain", "ngram", "ml-specqd"):
                model = verbatim.Model.load(folder, recipe)
                texts.add(model.generate(PROMPTS[0], max_tokens=24, ignore_eos=True).text)
                model.close()
            self.assertEqual(len(texts), 1, options)

    def test_what_is_no_model_is_refused_and_leaves_no_folder(self):
        for options, complaint in ((["--experts", "2", "--experts-per-token", "3"], "3 of 2 experts"),
                                   (["--vocabulary", "5"], "more than 5")):  # fmt: skip
            made = make(self.folder / "refused", *options)
            self.assertEqual(made.returncode, 1)
            self.assertIn(complaint, made.stderr)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_folder_that_is_there_is_kept(self):
        (self.folder / "kept").mkdir()
        made = make(self.folder / "kept")
        self.assertEqual(made.returncode, 1)
        self.assertIn("exists already", made.stderr)
        self.assertEqual(list((self.folder / "kept").iterdir()), [])


if __name__ == "__main__":
    support.main()
