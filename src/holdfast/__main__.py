"""`python -m holdfast`: the command line, for when its script is not on the path."""

import sys

from holdfast.cli import main

if __name__ == "__main__":
    sys.exit(main())
