"""The pictures of docs/benchmarks.md, drawn from the tables of that page.

`page` reads the tables, `figures` says which cells are drawn, `drawing` makes the pictures and
keeps them, and the words that stand for them, as the tables have it.
"""
