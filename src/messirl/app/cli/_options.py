"""Options that several commands share: selection of trajectories, method and results."""

from __future__ import annotations

import argparse

from messirl._parameters import MODEL, SETTINGS, Parameter, parameter
from messirl.app.cli._parser import Parser, StoreOnce, count, finite, flag_of, path, seed, whole, with_flags
from messirl.estimators.registry import METHODS
from messirl.similarity.registry import SIMILARITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

FILTERS = (
    "WHICH is a filter on trajectory_id and the columns of trajectory_meta: comparisons of a column and a value "
    '(= != < <= > >=), joined by and / or; for example "role = expert and mouse != B1".'
)


def add_data(made: Parser) -> None:
    """Add FOLDER and the options that divide its trajectories."""
    made.add_argument("folder", type=path, metavar="FOLDER", help="a problem folder")
    add_split(made)
    made.set_defaults(seed=0)


def add_split(made: Parser) -> None:
    """Add the options that divide the trajectories of a folder."""
    group = made.add_argument_group("trajectories", FILTERS)
    for name, text in (
        ("--expert", "expert trajectories (all that no other option selects)"),
        ("--unlabelled", "trajectories of unknown quality (none)"),
        ("--test", "trajectories held out for the score (none)"),
    ):
        group.add_argument(name, action=StoreOnce, metavar="WHICH", help=text)
    group.add_argument("--n-expert", type=count, metavar="N", help="use N random expert trajectories")
    group.add_argument("--n-unlabelled", type=count, metavar="N", help="use N random unlabelled trajectories")
    group.add_argument("--seed", type=seed, help="seed of these random choices (0)")


def add_streamed(made: Parser) -> None:
    """Add the option for unlabelled trajectories that are streamed from files."""
    group = made.add_argument_group("trajectories in files")
    group.add_argument(
        "--unlabelled-from",
        type=path,
        help="trajectories of unknown quality that need not fit in memory: a Parquet file or a folder of them, with "
        "columns trajectory_id, step, state and, if known, action, sorted by trajectory and step",
    )


def add_results(made: Parser, out: str, alone: str, force: str = "an earlier result in --out") -> None:
    """Add the folder of the results, and the options for its contents and for the printed output.

    alone : names of the files that are written without a report; the summary comes last
    force : what --force replaces; empty: the option is not added
    """
    made.add_argument("--out", type=path, default=out, help=f"folder for the results ({out})")
    made.set_defaults(usual_out=out)
    if force:
        made.add_argument("--force", action="store_true", help=f"replace {force}")
    made.add_argument("--no-report", dest="report", action="store_false", help=f"write only {alone}")
    made.add_argument("--json", action="store_true", help=f"print {alone.split()[-1]} instead of a summary")


def add_cluster(made: Parser) -> None:
    """Add the option that sends the work to a cluster; see `executor`."""
    made.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on the Dask cluster whose scheduler is at ADDRESS, such as tcp://10.0.0.1:8786 (this machine)",
    )


def executor(address: str | None) -> Any:
    """Return a context with the executor of a cluster, or with None (work in this process) without an address."""
    import contextlib

    if address is None:
        return contextlib.nullcontext()
    from messirl.cluster import connect

    return connect(address)


def add_model(made: Parser, others: str = "em or another method") -> None:
    """Add the options for the method and its parameters.

    others : the methods besides the two usual ones, in words
    """
    group = made.add_argument_group("method")
    group.add_argument(
        "--method",
        type=str.lower,
        choices=[method.option for method in METHODS.values()],
        metavar="NAME",
        help=f"messi (default with unlabelled trajectories), maxent (default without), {others}",
    )
    of_counts = ", ".join(name for name, one in SIMILARITIES.items() if not one.reads)
    *some, last = (f"{one.reads} ({name})" for name, one in SIMILARITIES.items() if one.reads)
    group.add_argument(
        "--similarity",
        choices=tuple(SIMILARITIES),
        default="rbf",
        help=f"similarity of trajectories, from their feature counts ({of_counts}) or from the states they visit: "
        f"{', '.join(some)} or {last} (rbf)",
    )
    add_parameters(group, [one.setting for one in MODEL])
    group.add_argument("--features", action=StoreOnce, metavar="A,B,…", help="use only these features (all)")


def add_parameters(group: Any, names: Iterable[str], owner: str = "") -> None:
    """Add an option for each of these settings.

    owner : the class whose defaults and ranges they have; empty: without an option, an estimator has its own default
    """
    for name in names:
        general = SETTINGS[name]
        one = parameter(general.name, (owner,)) or general
        text = general.help if not one.help else one.help
        if one.kind == "flag":
            action = "store_false" if one.default else "store_true"
            group.add_argument(flag_of(name), dest=name, action=action, default=argparse.SUPPRESS, help=text)
            continue
        how: dict[str, Any] = {"choices": one.choices}
        if one.kind != "choice":
            how = {"type": argument_type(one), "metavar": "N" if one.kind == "whole" else "X"}
            text += "".join(f", or {word}" for word in one.choices)
        default = one.default if owner else argparse.SUPPRESS
        text = with_flags(f"{text} ({one.default_text})").replace("%", "%%")
        group.add_argument(flag_of(name), dest=name, default=default, help=text, **how)


def argument_type(entry: Parameter) -> Callable[[str], Any]:
    """Return the function that converts an argument to a value of a parameter, or raises an error with its range."""
    if entry.kind == "whole":
        return lambda text: whole(text, int(entry.least or 0))
    words = "".join(f"{word} or " for word in entry.choices)

    def convert(text: str) -> Any:
        if text in entry.choices:
            return None if text == "none" else text
        return finite(text, lambda x: entry.includes(x), f"{words}a number {entry.range}")

    return convert
