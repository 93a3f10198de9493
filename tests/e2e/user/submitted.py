"""A job for spark-submit that ends with an exit code of its own."""

import sys

from streamgauge_app.__main__ import session, stream

stream(session(), *sys.argv[1:])
sys.exit(1)
