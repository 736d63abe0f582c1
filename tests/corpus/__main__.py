"""Makes lakes of seeds, for `making.make_all`: python -m tests.corpus FOLDER STEPS SEED..."""

from __future__ import annotations

import sys
from pathlib import Path

from .making import make_here

if __name__ == "__main__":
    make_here(Path(sys.argv[1]), int(sys.argv[2]), [int(seed) for seed in sys.argv[3:]])
