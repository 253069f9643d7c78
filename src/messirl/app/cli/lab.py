"""`messirl lab`: a page on this machine, on which to try problems and methods."""

from __future__ import annotations

import argparse
from functools import partial

from messirl.app.cli._parser import Parser, note, path

DESCRIPTION = (
    "Open a page on this machine: pick a problem, draw expert trajectories, drag λ0 and the rest, and see the reward "
    "follow. FOLDER: problem folders, folders that messirl fit or reproduce wrote, or folders that hold such; the page "
    "can open nothing else."
)
PORT, HOST = 8377, "127.0.0.1"
NEEDS = "messirl lab needs Starlette, uvicorn and Plotly: pip install 'messirl[lab]'"


def add(made: Parser) -> None:
    """Declare the arguments of `messirl lab`."""
    made.add_argument("folders", type=path, nargs="*", metavar="FOLDER", help="what the page may open")
    made.add_argument(
        "--port", type=_port, default=PORT, metavar="N", help=f"where to listen; 0: any that is free ({PORT})"
    )
    made.add_argument("--host", metavar="ADDR", help=f"listen to other machines too, at this address ({HOST} only)")
    made.add_argument("--no-browser", action="store_true", help="do not open the page, only print its address")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a whole number from 0 to 65535")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    try:
        from messirl.app.lab.routes import make_app
        from messirl.app.lab.server import listening, serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "plotly"):
            raise
        raise ImportError(NEEDS) from None
    from messirl.app.lab.folders import found_in
    from messirl.app.lab.security import served

    found = found_in(arguments.folders)
    address = arguments.host or HOST
    with listening(address, arguments.port) as place:
        port = place.getsockname()[1]
        alone = address in ("127.0.0.1", "localhost", "::1")
        if not alone:
            note(f"everybody who reaches {address} can use this page, and see what is in the folders given")
        url = f"http://{f'[{address}]' if ':' in address else address}:{port}/"
        print(f"messirl lab: {url} (folders to open: {len(found)}; Ctrl-C ends it)", flush=True)
        folders = [str(folder.resolve()) for folder in arguments.folders]
        app = make_app(folders, served(port, address), numbers=not alone)
        serve(app, place, None if arguments.no_browser else partial(_open, url))
    return 0


def _open(url: str) -> None:
    import webbrowser

    webbrowser.open(url)
