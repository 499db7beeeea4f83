"""The manual as a site: what can be checked without mdBook, which is too slow to build each time.

`make site` follows every link of what mdBook has made.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "scripts"))
import check_site  # noqa: E402  # from scripts/
import site_pages  # noqa: E402


def book_of_the_summary():
    """As mdBook gives it to a preprocessor that comes after `index`: in the summary's order."""
    items = []
    links = re.findall(r"^( *)(?:- )?\[(.*)\]\((.*)\)$", (DOCS / "SUMMARY.md").read_text(), re.M)
    for indent, name, file in links:
        number = [len(items) + 1]
        one = site_pages.chapter(name, file.replace("README.md", "index.md"),
                                 (DOCS / file).read_text(), number)
        one["source_path"] = file
        items.append({"Chapter": one}) if not indent else (
            items[-1]["Chapter"]["sub_items"].append({"Chapter": one}))
    return {"items": items}


class PagesOfTheRepository(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        told = subprocess.run([sys.executable, ROOT / "scripts/site_pages.py"], check=True,
                              input=json.dumps([{}, book_of_the_summary()]), text=True,
                              stdout=subprocess.PIPE)
        cls.book = json.loads(told.stdout)
        cls.pages = {page["path"]: page for page in site_pages.chapters_of(cls.book["items"])}

    def test_every_link_leads_to_a_page_or_to_a_file_below_docs(self):
        links, dead = 0, []

        def follow(link):
            nonlocal links
            if not site_pages.is_outside(link):
                links += 1
                name = link.partition("#")[0]
                there = os.path.normpath(os.path.join(os.path.dirname(page["path"]), name))
                if there not in self.pages and not (DOCS / there).is_file():
                    dead.append(f"{page['path']}: {link}")
                # mdBook leaves no page of that name.
                if name.endswith("README.md"):
                    dead.append(f"{page['path']}: {link}")
            return link

        for page in self.pages.values():
            site_pages.rewritten(page["content"], follow)
        self.assertGreater(links, 300)
        self.assertEqual(dead, [])

    def test_markdown_comes_as_it_is_and_all_else_as_code(self):
        for path in ("repository/ARCHITECTURE.md", "repository/bench/index.md"):
            self.assertIn(path, self.pages)
        page = self.pages["repository/packaging/pondage.toml.md"]
        file = (ROOT / "packaging/pondage.toml").read_text().rstrip()
        self.assertEqual(page["content"], f"# packaging/pondage.toml\n\n```toml\n{file}\n```\n")
        self.assertIn("(packaging/pondage.toml.md)", self.pages["repository/files.md"]["content"])

    def test_pages_have_numbers_of_their_own(self):
        numbers = [tuple(page["number"]) for page in self.pages.values()
                   if page["path"].startswith("repository/")]
        self.assertEqual(len(numbers), len(set(numbers)))
        self.assertGreater(min(numbers), (len(book_of_the_summary()["items"]),))

    def test_what_only_looks_like_a_link_stays(self):
        text = ("[a `code` b](x.md#y) `[b](x.md)` ``[`](x.md)`` [c](#d) [`d`](e)\n"
                "```\n[e](x.md)\n```\n~~~ sh\n[f](x.md)\n~~~\n[g](z)\n")
        seen = []
        changed = site_pages.rewritten(text, lambda link: seen.append(link) or f"<{link}>")
        self.assertEqual(seen, ["x.md#y", "#d", "e", "z"])
        self.assertEqual(re.sub("[<>]", "", changed), text)

    def test_a_link_to_nothing_ends_the_build_and_says_where(self):
        book = book_of_the_summary()
        for link in ("../gone.txt", "../../etc/passwd", "../tests"):
            book["items"][0]["Chapter"]["content"] = f"[text]({link})"
            told = subprocess.run([sys.executable, ROOT / "scripts/site_pages.py"],
                                  input=json.dumps([{}, book]), text=True, capture_output=True)
            self.assertEqual((told.returncode, told.stdout), (1, ""))
            self.assertIn(f"index.md: {link} is no file of the repository", told.stderr)


class LinksOfABuiltSite(unittest.TestCase):
    def check(self, **files):
        with tempfile.TemporaryDirectory() as name:
            site = pathlib.Path(name).resolve()
            (site / "sub").mkdir()
            for file, text in {"index": "", **files}.items():
                (site / f"{file.replace('_', '/')}.html").write_text(text)
            (site / "a b.svg").write_text("")
            return check_site.dead_links(site)

    def test_links_that_lead_somewhere_are_counted_only(self):
        page = ('<h1 id="here"><a href="#here">x</a></h1><a href="../index.html?x#top">x</a>'
                '<img src="../a%20b.svg"><source srcset="../a%20b.svg 2x"><a href="https://elsewhere.example/gone">x</a>'
                '<a href="mailto:a@b.example">x</a><a href="..">x</a>')
        self.assertEqual(self.check(sub_page=page, index='<p id="top">'), (5, []))

    def test_dead_ones_are_named_with_their_page(self):
        index = ('<a href="gone.html">x</a><a href="#gone">x</a><script src="gone.js"></script>'
                 '<a href="sub/page.html#gone">x</a><a href="../out.html">x</a>')
        count, dead = self.check(index=index, sub_page="<p>")
        self.assertEqual(count, 5)
        self.assertEqual(dead, [
            "index.html: gone.html: no such file",
            "index.html: #gone: no such heading",
            "index.html: gone.js: no such file",
            "index.html: sub/page.html#gone: no such heading",
            "index.html: ../out.html: leaves the site",
        ])

    def test_links_of_a_page_with_a_base_are_from_the_root(self):
        page = '<base href="/"><a href="index.html">x</a><a href="/index.html">x</a>'
        self.assertEqual(self.check(sub_page=page), (2, []))


if __name__ == "__main__":
    unittest.main()
