"""`python -m messirl.app.cli` is the command `messirl`."""

import sys

from messirl.app.cli import main

sys.exit(main())
