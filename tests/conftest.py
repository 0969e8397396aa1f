"""One thread a process: small tensors gain nothing from more, and processes share the cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
