"""Figures of a metrics page.

Source: Prometheus documentation, "Exposition formats".
"""

from __future__ import annotations

import urllib.request

ANSWER_SECONDS = 5.0


def parse(page: str) -> dict[str, float]:
    """Samples by name, those of all labels added up."""
    samples: dict[str, float] = {}
    for line in page.splitlines():
        if not line or line.startswith("#"):
            continue
        # A label's value may contain blanks and braces.
        labelled, brace, rest = line.rpartition("}")
        name, value = (labelled.partition("{")[0], rest) if brace else line.split(maxsplit=1)
        samples[name] = samples.get(name, 0.0) + float(value.split()[0])
    return samples


def fetch(address: str) -> dict[str, float]:
    """Raises OSError when nobody answers at `address`."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=ANSWER_SECONDS) as answer:
        page: bytes = answer.read()
    return parse(page.decode())
