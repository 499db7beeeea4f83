"""`python3 -m pondage_bench`."""

import sys

from .cli import main

sys.exit(main(sys.argv[1:]))
