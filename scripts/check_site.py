#!/usr/bin/env python3
"""Follows every link within the built manual: check_site.py DIRECTORY.

Each has to lead to a file of the site, and to a heading that is there. Pages elsewhere are not
asked. Exit status: 0, 1 when a link is dead, 2 usage.
"""

import pathlib
import re
import sys
from html.parser import HTMLParser
from urllib.parse import unquote

SOURCES = {"a": "href", "link": "href", "img": "src", "script": "src", "iframe": "src",
           "source": "src", "object": "data"}


class Page(HTMLParser):
    """What a page links to and what in it can be linked to."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.base = [], set(), ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        if tag == "base":
            self.base = known.get("href") or ""
        link = known.get(SOURCES.get(tag, ""))
        if link is not None:
            self.links.append(link)
        # Pictures for dark pages: addresses, each with its condition behind it, between commas.
        self.links += [one.split()[0] for one in (known.get("srcset") or "").split(",") if one]
        self.anchors.update(known[name] for name in ("id", "name") if known.get(name))


def dead_links(site):
    """How many links there are within the site, and those that lead nowhere, as lines."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    count, dead = 0, []
    for path, page in pages.items():
        # A page with a base, which is the one for what is not found, has links from the root.
        home = site if page.base.startswith("/") else path.parent
        for link in page.links:
            if re.match(r"([a-z][a-z0-9+.-]*:|//)", link):
                continue
            count += 1
            name, _, anchor = link.partition("#")
            name = unquote(name.partition("?")[0])
            at = site / name.lstrip("/") if name.startswith("/") else home / name
            there = (at if name else path).resolve()
            if there.is_dir():
                there /= "index.html"
            why = fault(site, pages, there, unquote(anchor))
            if why:
                dead.append(f"{path.relative_to(site)}: {link}: {why}")
    return count, dead


def fault(site, pages, there, anchor):
    if not there.is_relative_to(site):
        return "leaves the site"
    if not there.is_file():
        return "no such file"
    if anchor and there in pages and anchor not in pages[there].anchors:
        return "no such heading"
    return None


def main(arguments):
    if len(arguments) != 1 or not pathlib.Path(arguments[0], "index.html").is_file():
        print("check_site.py DIRECTORY: one that has an index.html", file=sys.stderr)
        return 2
    count, dead = dead_links(pathlib.Path(arguments[0]).resolve())
    for line in dead:
        print(line, file=sys.stderr)
    print(f"{count} links within the site, {len(dead)} of them dead")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
