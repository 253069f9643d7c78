"""Entry point of `python -m messirl.cli`."""

import sys

from messirl.cli import main

sys.exit(main())
