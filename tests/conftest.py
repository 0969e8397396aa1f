"""What all tests begin with."""

import os
import signal

# one thread a process: small tensors gain nothing from more, and processes share the cores
os.environ.setdefault("OMP_NUM_THREADS", "1")
# as in a terminal, even if `nohup` or a shell's "&", which ignore these, started the tests
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
