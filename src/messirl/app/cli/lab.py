"""`messirl lab`: an interactive page on this machine to try problems and methods."""

from __future__ import annotations

import argparse
from functools import partial

from messirl.app.cli._parser import Parser, note, path

DESCRIPTION = (
    "Open an interactive page on this machine: pick a problem, draw expert trajectories, move the sliders for λ0 and "
    "other parameters, and watch the reward change. FOLDER: a problem folder, a folder that messirl fit or reproduce "
    "wrote, or a folder that contains such folders. The page can open nothing else."
)
PORT, HOST = 8377, "127.0.0.1"
NEEDS = "messirl lab needs Starlette, uvicorn and Plotly: pip install 'messirl[lab]'"


def add(made: Parser) -> None:
    """Declare the arguments of `messirl lab`."""
    made.add_argument("folders", type=path, nargs="*", metavar="FOLDER", help="folders that the page may open")
    made.add_argument(
        "--port", type=_port, default=PORT, metavar="N", help=f"port to listen on; 0: any free port ({PORT})"
    )
    made.add_argument(
        "--host", metavar="ADDR", help=f"address to listen on, to serve other machines too ({HOST}: only this one)"
    )
    made.add_argument("--no-browser", action="store_true", help="only print the address of the page, do not open it")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a whole number from 0 to 65535")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C."""
    try:
        from messirl.app.lab.routes import make_app
        from messirl.app.lab.server import open_socket, serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "plotly"):
            raise
        raise ImportError(NEEDS) from None
    from messirl.app.lab.folders import find_folders
    from messirl.app.lab.security import allowed_hosts

    found = find_folders(arguments.folders)
    address = arguments.host or HOST
    with open_socket(address, arguments.port) as place:
        port = place.getsockname()[1]
        alone = address in ("127.0.0.1", "localhost", "::1")
        if not alone:
            note(f"everybody who reaches {address} can use this page and see the contents of the given folders")
        url = f"http://{f'[{address}]' if ':' in address else address}:{port}/"
        print(f"messirl lab: {url} (folders to open: {len(found)}; Ctrl-C stops it)", flush=True)
        folders = [str(folder.resolve()) for folder in arguments.folders]
        app = make_app(folders, allowed_hosts(port, address), numbers=not alone)
        serve(app, place, None if arguments.no_browser else partial(_open, url))
    return 0


def _open(url: str) -> None:
    import webbrowser

    webbrowser.open(url)
