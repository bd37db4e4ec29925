"""Which version this is; what is stored names it."""

import time

VERSION = "0.2.0"
IMPORTED: int = time.time_ns()  # files that are younger are not what this process runs
