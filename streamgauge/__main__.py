"""`python -m streamgauge`: the command, where the script is not on the path."""

from streamgauge.cli import main

main()
