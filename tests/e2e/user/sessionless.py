"""A script without Spark: tells what it sees of its surroundings, and ends with a code of its own."""

import os
import sys
import threading

print(sys.argv[1:], __name__, os.path.basename(__file__), sys.stdin.read())
print([os.path.basename(entry) for entry in sys.path], sorted(set(sys.modules) & {"numpy", "urllib3", "click"}))
print(threading.active_count(), "streamgauge" in sys.modules, "spark_hooks" in sys.modules)
print(getattr(sys, "customised", None))
sys.exit(7)
