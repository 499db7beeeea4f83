"""Results of a suite as a table, on the terminal and between two marks of a page."""

import json
import pathlib


def table(heading: str, rows: list[dict]) -> str:
    """One line for each file, and the sum."""
    columns = ["passed", "failed", "skipped"]
    total = {"file": "all", **{name: sum(row[name] for row in rows) for name in columns}}
    lines = [f"| {heading} | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for row in [*rows, total]:
        note = " (ended early)" if row.get("ended_early") else ""
        cells = " | ".join(str(row[name]) for name in columns)
        lines.append(f"| {row['file']}{note} | {cells} |")
    return "\n".join(lines) + "\n"


def publish(name: str, text: str, rows: list[dict], out: pathlib.Path, page: str | None) -> None:
    """Prints, keeps `NAME.json` in `out`, and replaces what stands in `page` between the marks."""
    print(f"\n{text}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
    if page:
        replace(pathlib.Path(page), name, text)


def replace(page: pathlib.Path, name: str, text: str) -> None:
    begin, end = f"<!-- {name} begins -->\n", f"<!-- {name} ends -->"
    old = page.read_text()
    before, found, rest = old.partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{page} has no place for it: {begin.strip()} and {end}")
    page.write_text(before + begin + text + rest[rest.index(end):])
