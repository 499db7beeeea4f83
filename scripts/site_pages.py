#!/usr/bin/env python3
"""A preprocessor of mdBook: what the manual links to in the repository becomes pages of the site.

Links that leave docs/ are right where the repository is browsed, and dead in a site that is made of
docs/ alone. So each file that they lead to gets a page, Markdown as it is and all else as code, and
those that such a page links to in turn. What mdBook wants of a preprocessor:
https://rust-lang.github.io/mdBook/for_developers/preprocessors.html
"""

import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PART = "The repository"
FOLDER = pathlib.PurePosixPath("repository")
FILES = FOLDER / "files.md"
# Names that highlight.js knows. `rust` would make mdBook hide lines and offer to run them.
LANGUAGES = {".rs": "rs", ".service": "ini", ".toml": "toml", ".yaml": "yaml", ".json": "json",
             ".py": "python", ".sh": "sh"}
CODE = r"^(?P<fence>```+|~~~+).*?^(?P=fence)[`~]*$|(?P<tick>`+)(?!`).*?(?<!`)(?P=tick)(?!`)"
LINK = r"\]\((?P<link>[^)\s]+)\)"
LINKS = re.compile(f"{CODE}|{LINK}", re.M | re.S)


class SiteError(Exception):
    """A link of the manual that no page can be made for."""


def rewritten(text, change):
    """The text with every link as `change` wants it; what only looks like one, in code, stays."""
    def one(found):
        link = found["link"]
        return found[0] if link is None else f"]({change(link)})"
    return LINKS.sub(one, text)


def is_outside(link):
    """Whether it leads to another site, or stays on its page."""
    return link.startswith("#") or re.match(r"[a-z][a-z0-9+.-]*:", link) is not None


class Repository:
    """The pages that have come to the book; `home` is where a page's links are seen from."""

    def __init__(self):
        self.pages = {}
        self.open = []

    def linked(self, text, page, home):
        """The text of the page at the path `page` of the book, which was written for `home`."""
        def change(link):
            if is_outside(link):
                return link
            name, hash_, anchor = link.partition("#")
            there = pathlib.Path(os.path.normpath(home / name))
            if there.is_relative_to(DOCS):
                goal = pathlib.PurePosixPath(there.relative_to(DOCS))
            else:
                goal = self.page_of(there, f"{page}: {link}")
            # mdBook renames the page of a README, but not what links to it.
            if goal.name == "README.md":
                goal = goal.with_name("index.md")
            return os.path.relpath(goal, page.parent) + hash_ + anchor
        return rewritten(text, change)

    def page_of(self, file, link):
        """The path in the book of a file that is not in docs/; `link` is for the error."""
        if not file.is_relative_to(ROOT) or not file.is_file():
            raise SiteError(f"{link} is no file of the repository")
        inside = pathlib.PurePosixPath(file.relative_to(ROOT))
        if file not in self.pages:
            name = inside.name if inside.suffix == ".md" else inside.name + ".md"
            self.pages[file] = FOLDER / inside.parent / name.replace("README.md", "index.md")
            self.open.append(file)
        return self.pages[file]

    def chapters(self, number):
        """A part of the book with all of them, numbered from there: first those in Markdown, then
        one for the others.
        """
        texts, others = [], []
        while self.open:
            file = self.open.pop(0)
            page = self.pages[file]
            name = str(file.relative_to(ROOT))
            if file.suffix == ".md":
                text = self.linked(file.read_text(), page, file.parent)
                texts.append(chapter(name, page, text, [number + len(texts)]))
            else:
                others.append(chapter(name, page, as_code(file), [0, 1 + len(others)], ["Files"]))
        listed = "".join(
            f"- [{other['name']}]({os.path.relpath(other['path'], FOLDER)})\n" for other in others
        )
        listed = "# Files\n\nThose that this manual names.\n\n" + listed
        files = chapter("Files", FILES, listed, [number + len(texts)])
        for other in others:
            other["number"][0] = files["number"][0]
            files["sub_items"].append({"Chapter": other})
        return [{"PartTitle": PART}, *({"Chapter": text} for text in [*texts, files])]


def chapter(name, page, text, number, parents=()):
    return {"name": name, "content": text, "number": number, "sub_items": [], "path": str(page),
            "source_path": None, "parent_names": list(parents)}


def as_code(file):
    text = file.read_text()
    longest = max((len(run) for run in re.findall(r"^\s*(`+)", text, re.M)), default=0)
    fence = "`" * max(3, longest + 1)
    language = LANGUAGES.get(file.suffix, "text")
    return f"# {file.relative_to(ROOT)}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def chapters_of(items):
    """All chapters, those within others too."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters_of(item["Chapter"]["sub_items"])


def with_repository(book):
    """The book, as mdBook gives it, with the pages of the repository behind its own."""
    repository = Repository()
    last = 0
    for page in chapters_of(book["items"]):
        last = max(last, (page["number"] or [0])[0])
        if page["source_path"]:
            home = (DOCS / page["source_path"]).parent
            path = pathlib.PurePosixPath(page["path"])
            page["content"] = repository.linked(page["content"], path, home)
    book["items"] += repository.chapters(last + 1)
    return book


def main():
    if sys.argv[1:2] == ["supports"]:
        return 0
    _context, book = json.load(sys.stdin)
    try:
        json.dump(with_repository(book), sys.stdout)
    except SiteError as error:
        print(f"site_pages.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
