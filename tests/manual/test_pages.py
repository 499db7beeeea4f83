"""Reading a page: what a block is, what a transcript says, and when an answer is another one."""

import unittest

import prose
import run
from pages import Block, PageError, blocks, differs, exchanges


def block(info: str, text: str) -> Block:
    (found,) = blocks("page.md", f"words\n\n```{info}\n{text}```\n")
    return found


class Blocks(unittest.TestCase):
    def test_a_block_has_its_language_words_and_line(self) -> None:
        found = block("sql server", "SELECT 1;\n")
        self.assertEqual((found.language, found.words, str(found)),
                         ("sql", {"server"}, "page.md:3"))

    def test_a_block_that_nobody_knows_is_refused(self) -> None:
        for info in ("", "bash", "sh server", "sql ignore"):
            with self.assertRaises(PageError, msg=info):
                block(info, "x\n")
        with self.assertRaises(PageError):
            blocks("page.md", "```sh\nx\n")

    def test_a_block_in_a_list_is_as_if_it_stood_alone(self) -> None:
        (found,) = blocks("page.md", "1. so:\n\n   ```sh\n   a\n     b\n   ```\n")
        self.assertEqual(found.text, "a\n  b\n")

    def test_commands_go_on_over_lines(self) -> None:
        text = "# a remark\none \\\n  more\nfor x in y; do\n  z\ndone\nlast\n"
        self.assertEqual([(line, command.count("\n")) for line, command in
                          block("sh", text).commands()], [(5, 1), (7, 2), (10, 0)])


class Transcripts(unittest.TestCase):
    def test_each_program_has_its_prompt(self) -> None:
        talks = exchanges(block("console", "$ ls\napp=> select 1,\napp->   2;\n (1)\napp=*# x;\n"
                                           "127.0.0.1:6379> PING\nPONG\n"))
        self.assertEqual([(talk.at, talk.typed, talk.answer) for talk in talks], [
            ("shell", "ls", []), ("psql", "select 1,\n  2;", [" (1)"]), ("psql", "x;", []),
            ("redis", "PING", ["PONG"]),
        ])
        with self.assertRaises(PageError):
            exchanges(block("console", "no prompt\n"))

    def test_figures_may_differ_and_nothing_else(self) -> None:
        page = ["Way: batch, with 12 others", "Took: 85 us"]
        self.assertIsNone(differs(page, ["Way:  batch, with 3 others", "Took: 1.5 us"], False))
        self.assertIn("Way", differs(page, ["Way: alone", "Took: 85 us"], False) or "")
        self.assertIn("the end", differs(page, page[:1], False) or "")
        self.assertIn("Took", differs(page[:1], page, False) or "")

    def test_exactly_means_figures_too(self) -> None:
        self.assertIsNone(differs(["a   1"], ["a 1"], True))
        self.assertIsNotNone(differs(["a 1"], ["a 2"], True))

    def test_an_ellipsis_stands_for_the_rest(self) -> None:
        self.assertIsNone(differs(["Why: …", "x"], ["Why: it is so", "x"], True))
        self.assertIsNone(differs(["a", "…", "d"], ["a", "b", "c", "d"], True))
        self.assertIsNone(differs(["a", "…"], ["a", "b"], True))
        self.assertIsNotNone(differs(["a", "…", "d"], ["a", "b"], True))


class Prose(unittest.TestCase):
    def test_code_in_sentences_is_found_and_blocks_are_not(self) -> None:
        text = "Say `make run`, or `pondage x`.\n```sh\n`date`\n```\n| `SHOW POOLS` |\n"
        self.assertEqual(prose.spans(text), ["make run", "pondage x", "SHOW POOLS"])


class Configurations(unittest.TestCase):
    def test_what_a_page_shows_is_put_over_what_is_there(self) -> None:
        there = {"pool": {"mode": "session", "pool_size": 5}}
        run.merge(there, {"pool": {"mode": "transaction"}, "cache": {"mode": "auto"}})
        self.assertEqual(run.toml(there), '["pool"]\n"mode" = "transaction"\n"pool_size" = 5\n'
                                          '\n["cache"]\n"mode" = "auto"\n\n')

    def test_statements_with_parameters_are_prepared(self) -> None:
        self.assertEqual(run.with_values("SELECT $1"), "PREPARE read AS SELECT $1")
        self.assertEqual(run.with_values("SELECT 1; SELECT $1"), "SELECT 1; SELECT $1")


if __name__ == "__main__":
    unittest.main()
