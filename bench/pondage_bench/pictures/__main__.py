"""`python3 -m pondage_bench.pictures` draws them anew; `make pictures` runs it."""

import sys

from ..machine import REPOSITORY
from .drawing import redraw
from .figures import PICTURES
from .page import PageError

try:
    for path in redraw(REPOSITORY, PICTURES):
        print(path.relative_to(REPOSITORY))
except PageError as error:
    sys.exit(f"error: {error}")
