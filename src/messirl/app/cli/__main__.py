"""Entry point of `python -m messirl.app.cli`."""

import sys

from messirl.app.cli import main

sys.exit(main())
