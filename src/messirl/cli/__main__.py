"""`python -m messirl.cli` is the command `messirl`."""

import sys

from messirl.cli import main

sys.exit(main())
