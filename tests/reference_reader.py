"""A slow, plain reader of problem folders of CSV files, written apart from messirl.io: what that must agree with.

It uses the modules csv and json, and loops. `read(files)` takes the folder as a mapping from file names to bytes and
returns its content as plain lists, or raises `Refused`.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import math

TOLERANCE = 1e-6
LARGEST = 50_000_000
IDS = ("state", "from", "to", "action", "trajectory_id", "step", "goal", "name")
KEYS = ("discount", "horizon", "n_actions", "state_names", "action_names", "feature_names", "y_axis")


class Refused(Exception):
    """The folder is not a problem."""


def need(condition, why):
    if not condition:
        raise Refused(why)


# ------------------------------------------------------------ cells


def is_digits(text):
    return text != "" and all(sign in "0123456789" for sign in text)


def is_whole(text):
    digits = text[1:] if text.startswith("-") else text
    if not is_digits(digits):
        return False
    return text == "0" or digits[0] != "0"


def is_number(text):
    body = text[1:] if text.startswith("-") else text
    if body.lower() in ("nan", "inf", "infinity"):
        return body.isascii()
    for mark in "eE":
        if mark in body:
            body, power = body.split(mark, 1)
            if not is_digits(power[1:] if power[:1] in ("+", "-") else power):
                return False
            break
    before, dot, after = body.partition(".")
    if dot and after and not is_digits(after):
        return False
    if before == "":
        return bool(dot and after)
    return is_digits(before) and (before == "0" or before[0] != "0")


def is_flag(text):
    return text in ("true", "false", "True", "False", "TRUE", "FALSE")


def is_yes_or_no(text):
    return text.lower() in ("yes", "no", "true", "false") and text.isascii()


def has_decimal_comma(text):
    """Whether it is a number once its only comma is a point, with digits after it."""
    if text.count(",") != 1 or "." in text:
        return False
    after = text.split(",")[1]
    return after[:1] in tuple("0123456789") and is_number(text.replace(",", "."))


def may_be_thousands(text):
    before, _, after = text.removeprefix("-").partition(",")
    return 1 <= len(before) <= 3 and before[0] != "0" and is_digits(before) and len(after) == 3 and is_digits(after)


def without_point_zero(cells):
    """The cells of a column in which every one that is filled is a whole number and `.0`, as whole numbers."""
    filled = [cell for cell in cells if cell != ""]
    if filled and all(cell.endswith(".0") and is_whole(cell[:-2]) and len(cell) < 21 for cell in filled):
        return [cell[:-2] if cell else "" for cell in cells]
    return cells


def kind_of(cells):
    filled = [cell for cell in cells if cell != ""]
    if not filled:
        return "empty"
    if all(is_whole(cell) for cell in filled):
        return "whole" if all(-(2**63) <= int(cell) < 2**63 for cell in filled) else "huge"
    if all(is_number(cell) for cell in filled):
        return "number"
    if all(is_flag(cell) for cell in filled):
        return "flag"
    return "text"


def column_values(cells):
    """A column that is kept as it is: None (NaN among numbers) where a cell is empty."""
    read = {"whole": int, "number": float, "flag": lambda cell: cell.lower() == "true"}.get(kind_of(cells), str)
    nothing = math.nan if kind_of(cells) == "number" else None
    return [nothing if cell == "" else read(cell) for cell in cells]


def finite_numbers(cells, *, empty_ok=False):
    numbers = []
    flags = all(is_yes_or_no(cell) for cell in cells if cell != "") and kind_of(cells) in ("flag", "text")
    for cell in cells:
        if cell == "":
            need(empty_ok, "an empty number")
            numbers.append(math.nan)
        elif flags:
            numbers.append(float(cell.lower() in ("true", "yes")))
        else:
            need(is_number(cell), "not a number")
            value = float(cell)
            need(not math.isinf(value), "infinite")
            need(empty_ok or not math.isnan(value), "nan")
            numbers.append(value)
    return numbers


# ------------------------------------------------------------ tables


def records(text, sign):
    """All rows that are not blank, or None where the text is not CSV with that sign."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=True))
    except csv.Error:
        return None
    return [[cell.strip(" \t") for cell in row] for row in rows if any(cell.strip(" \t") for cell in row)]


def first_record(text, sign):
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=True):
            if any(cell.strip(" \t") for cell in row):
                return [cell.strip(" \t") for cell in row]
    except csv.Error:
        pass
    return []


def separator_of(text):
    heads = {sign: first_record(text, sign) for sign in ",;\t"}
    signs = [sign for sign, head in heads.items() if len(head) > 1]
    if len(signs) <= 1:
        return signs[0] if signs else ","
    named = [sign for sign in signs if any(name in heads[sign] for name in ("state", "from", "trajectory_id"))]
    if len(named) == 1:
        return named[0]
    even = [sign for sign in signs if records(text, sign) and len({len(row) for row in records(text, sign)}) == 1]
    need(len(even) == 1, "two separators")
    return even[0]


def with_points(columns):
    """Decimal commas as decimal points, where they are certainly that."""
    numbers = {
        name: cells
        for name, cells in columns.items()
        if name not in IDS and all(cell == "" or is_number(cell) or has_decimal_comma(cell) for cell in cells)
    }
    commas = {name: cells for name, cells in numbers.items() if any(has_decimal_comma(cell) for cell in cells)}
    if not commas:
        return columns
    others = [cell for name, cells in columns.items() if name not in IDS for cell in cells]
    need(not any(is_number(cell) and "." in cell for cell in others), "decimal commas and points")
    with_comma = [cell for cells in commas.values() for cell in cells if "," in cell]
    need(not all(may_be_thousands(cell) for cell in with_comma), "thousands or decimals")
    return {n: [c.replace(",", ".") for c in cells] if n in commas else cells for n, cells in columns.items()}


def table(files, name):
    """Column names and columns of name.csv, or None."""
    data = files.get(f"{name}.csv")
    if data is None:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(str(error)) from None
    need("\0" not in text, "NUL")
    need(not text.startswith(("sep=", '"sep=')), "sep=")
    sign = separator_of(text)
    rows = records(text, sign)
    need(rows, "an empty file, or not CSV")
    head, *body = rows
    need(all(len(row) == len(head) for row in body), "a row too long or too short")
    while len(head) > 1 and head[-1] == "" and all(row[-1] == "" for row in body):
        head, body = head[:-1], [row[:-1] for row in body]
    need(len(set(head)) == len(head), "a column twice")
    columns = {column: [row[i] for row in body] for i, column in enumerate(head)}
    return columns if sign == "," else with_points(columns)


def ids_of(cells):
    """The kind of an id column: whole numbers or text, nothing empty."""
    if not cells:
        return "whole"
    cells = without_point_zero(cells)
    need(kind_of(cells) in ("whole", "text"), "not an id")
    need("" not in cells, "an empty id")
    return kind_of(cells)


def index_of(cells, labels, n, *, empty_ok=False):
    """Indices of cells among labels or, without labels, among 0 … n − 1; None where empty."""
    found = []
    for cell in without_point_zero(cells) if labels is None else cells:
        if cell == "":
            need(empty_ok, "an empty id")
            found.append(None)
        elif labels is not None:
            need(cell in labels, "unknown label")
            found.append(labels.index(cell))
        else:
            need(is_whole(cell) and 0 <= int(cell) < n, "unknown number")
            found.append(int(cell))
    return found


def settings_of(data):
    def once(pairs):
        need(len({key for key, _ in pairs}) == len(pairs), "a key twice")
        return dict(pairs)

    need(data is not None, "no problem.json")
    try:
        content = json.loads(data.decode("utf-8-sig"), object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise Refused("not JSON") from None
    need(isinstance(content, dict), "not an object")
    for key in content:
        close = key.strip().lower() in ("gamma", "γ", "discount_factor") or difflib.get_close_matches(
            key.strip().lower(), KEYS, n=1, cutoff=0.6
        )
        need(key in KEYS or not close, "a key that is misspelt")
    discount = content.get("discount")
    need(isinstance(discount, int | float) and not isinstance(discount, bool) and 0 < discount <= 1, "discount")
    for key in ("horizon", "n_actions"):
        value = content.get(key)
        need(value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1), key)
    need((content.get("n_actions") or 0) <= LARGEST, "n_actions")
    for key in ("state_names", "action_names", "feature_names"):
        names = content.get(key)
        if names is not None:
            need(isinstance(names, list) and all(isinstance(name, str) for name in names), key)
            need(len(set(names)) == len(names), f"{key} twice")
            need(all(not 0xD800 <= ord(sign) <= 0xDFFF for name in names for sign in name), key)
    need(content.get("y_axis") in (None, "up", "down"), "y_axis")
    return content


# ------------------------------------------------------------ the four tables


def read_states(columns):
    need("state" in columns and columns["state"], "no states")
    n = len(columns["state"])
    labels, order = None, list(range(n))
    if ids_of(columns["state"]) == "text":
        labels = columns["state"]
        need(len(set(labels)) == n, "a state twice")
    else:
        numbers = [int(cell) for cell in without_point_zero(columns["state"])]
        need(sorted(numbers) == list(range(n)), "states are not 0 … n − 1")
        order = sorted(range(n), key=lambda row: numbers[row])
    states = {"n": n, "labels": labels, "names": None, "start": None, "xy": None, "columns": {}}
    feature_names = [name for name in columns if name.startswith("f_")]
    features = [finite_numbers(columns[name]) for name in feature_names]
    states["feature_names"] = feature_names
    states["features"] = [[values[row] for values in features] for row in order]
    states["terminal"] = [False] * n
    if "terminal" in columns:
        cells = without_point_zero(columns["terminal"])
        need("" not in cells, "terminal is empty")
        need(all(is_yes_or_no(cell) or cell in ("0", "1") for cell in cells), "terminal is not a boolean")
        states["terminal"] = [cells[row].lower() in ("1", "true", "yes") for row in order]
    if "start" in columns:
        weights = finite_numbers(columns["start"])
        need(all(weight >= 0 for weight in weights), "negative start")
        need(0 < sum(weights) < math.inf, "start sums to nothing")
        states["start"] = [weights[row] / sum(weights) for row in order]
    if "name" in columns:
        names = columns["name"]
        need("" not in names and len(set(names)) == n, "names")
        states["names"] = [names[row] for row in order]
    used = {"state", "terminal", "start", "name", *feature_names}
    if "x" in columns and "y" in columns:
        x, y = (finite_numbers(columns[name], empty_ok=True) for name in "xy")
        need(all(at != at or abs(at) <= 1e100 for at in (*x, *y)), "a coordinate is too large to be drawn")
        states["xy"] = [[x[row], y[row]] for row in order]
        used |= {"x", "y"}
    for name, cells in columns.items():
        if name not in used:
            kept = column_values(cells)
            states["columns"][name] = [kept[row] for row in order]
    return states


def read_actions(cells, settings):
    """Labels, or None, and the number of actions."""
    names, n = settings.get("action_names"), settings.get("n_actions")
    if names is not None:
        need(n is None or n == len(names), "n_actions and action_names")
        return (names if kind_of(cells) == "text" else None), len(names)
    if n is not None:
        return None, n
    if ids_of(cells) == "text":
        labels = sorted(set(cells))
        return labels, len(labels)
    numbers = {int(cell) for cell in without_point_zero(cells)}
    need(numbers == set(range(len(numbers))), "actions are not 0 … A − 1")
    return None, len(numbers)


def read_edges(columns, states, settings):
    for name in ("from", "to", "action"):
        need(name in columns and columns[name], "an edge column is missing")
    feature_names = [name for name in columns if name.startswith("g_")]
    features = [finite_numbers(columns[name]) for name in feature_names]
    source = index_of(columns["from"], states["labels"], states["n"])
    target = index_of(columns["to"], states["labels"], states["n"])
    labels, n_actions = read_actions(columns["action"], settings)
    need(n_actions * states["n"] <= LARGEST, "too many actions")
    action = index_of(columns["action"], labels, n_actions)
    probability = [1.0] * len(source)
    if "probability" in columns:
        probability = finite_numbers(columns["probability"])
        need(all(0 <= p <= 1 + TOLERANCE for p in probability), "probability")
    groups, seen = {}, set()
    for row, move in enumerate(zip(source, action, target, strict=True)):
        need(move not in seen, "an edge twice")
        seen.add(move)
        groups.setdefault(move[:2], []).append(row)
    transitions, expected = {}, {}
    row_of = {(*move[:2], move[2]): row for row, move in enumerate(zip(source, action, target, strict=True))}
    for choice, rows in groups.items():
        total = math.fsum(probability[row] for row in rows)
        need("probability" in columns or len(rows) == 1, "one edge a choice")
        need(abs(total - 1) <= TOLERANCE, "probabilities do not sum to one")
        if states["terminal"][choice[0]]:
            continue
        parts = [states["features"][target[row]] + [values[row] for values in features] for row in rows]
        expected[choice] = [
            math.fsum(probability[row] / total * part[k] for row, part in zip(rows, parts, strict=True))
            for k in range(len(parts[0]))
        ]
        for row in rows:
            if probability[row] > 0:
                transitions[(*choice, target[row])] = probability[row] / total
    need(expected, "no move")
    names = states["feature_names"] + feature_names
    need(names, "no feature")
    return {
        "labels": labels,
        "n": n_actions,
        "transitions": transitions,
        "feature_names": names,
        "features": expected if feature_names else states["features"],
        "columns": {
            name: [column_values(cells)[row_of[move]] for move in sorted(transitions)]
            for name, cells in columns.items()
            if name not in ("from", "to", "action", "probability", *feature_names)
        },
    }


def read_steps(columns, states, edges):
    for name in ("trajectory_id", "step", "state"):
        need(name in columns, "a column of trajectories is missing")
    visited = index_of(columns["state"], states["labels"], states["n"])
    called = columns["trajectory_id"]
    if ids_of(called) == "whole":
        called = [int(cell) for cell in without_point_zero(called)]
    need(ids_of(columns["step"]) == "whole", "steps are whole numbers")
    steps = [int(cell) for cell in without_point_zero(columns["step"])]
    taken = None
    if "action" in columns:
        taken = index_of(columns["action"], edges["labels"], edges["n"], empty_ok=True)
    rows = sorted(range(len(steps)), key=lambda row: (called.index(called[row]), steps[row]))
    found = []
    for row in rows:
        if not found or found[-1]["id"] != called[row]:
            found.append({"id": called[row], "states": [], "actions": None if taken is None else [], "steps": []})
        found[-1]["states"].append(visited[row])
        found[-1]["steps"].append(steps[row])
        if taken is not None:
            found[-1]["actions"].append(taken[row])
    first = 1 if found and all(one["steps"][0] == 1 for one in found) else 0
    for one in found:
        wanted = list(range(first, first + len(one["steps"])))
        need(one["steps"] == wanted, "steps do not count 0, 1, 2, …")
        if taken is not None:
            need(one["actions"].pop() is None, "an action after the last state")
            need(None not in one["actions"], "an action is missing")
    kept = {name: column_values(cells) for name, cells in columns.items()}
    used = ("trajectory_id", "step", "state", "action")
    return found, {name: [values[row] for row in rows] for name, values in kept.items() if name not in used}


def read_meta(columns, trajectories, states):
    need("trajectory_id" in columns, "meta without trajectory_id")
    names = [one["id"] for one in trajectories]
    rows = []
    cells = columns["trajectory_id"]
    if names and isinstance(names[0], int):
        cells = without_point_zero(cells)
    for cell in cells:
        name = int(cell) if names and isinstance(names[0], int) and is_whole(cell) else cell
        need(name in names and name not in rows, "meta is not one row per trajectory")
        rows.append(name)
    need(len(rows) == len(names), "meta lacks a trajectory")
    order = [rows.index(name) for name in names]
    goals = None
    if any(cell != "" for cell in columns.get("goal", [])):
        goals = index_of(columns["goal"], states["labels"], states["n"])
        goals = [goals[row] for row in order]
    kept = {name: column_values(cells) for name, cells in columns.items() if name != "trajectory_id"}
    return {name: [values[row] for row in order] for name, values in kept.items()}, goals


def check_fit(states, edges, trajectories, goals, settings):
    """Whether the trajectories can come from the problem."""
    stuck = [s for s in range(states["n"]) if not any(move[0] == s for move in edges["transitions"])]
    need(goals is None or not trajectories or settings.get("horizon") is None, "goals and a horizon")
    for i, one in enumerate(trajectories):
        visited, goal = one["states"], None if goals is None else goals[i]
        need(goal is None or goal == visited[-1], "it does not end in its goal")
        for t, s in enumerate(visited):
            last = t == len(visited) - 1
            need(last or not states["terminal"][s], "it goes on after a terminal state")
            need(last or s != goal, "it goes on after its goal")
            need(s not in stuck or states["terminal"][s] or s == goal, "a dead end")
            if not last:
                choices = range(edges["n"]) if one["actions"] is None else [one["actions"][t]]
                need(any((s, a, visited[t + 1]) in edges["transitions"] for a in choices), "no such move")
        horizon = settings.get("horizon")
        if horizon is not None:
            need(len(visited) <= horizon, "longer than the horizon")
            need(len(visited) == horizon or states["terminal"][visited[-1]], "shorter than the horizon")


def names_of(settings, key, default, n):
    names = settings.get(key, default)
    need(names is None or (len(names) == n and len(set(names)) == n), f"{key} are not {n}")
    return names


def read(files):
    """The content of a folder of CSV files, given as a mapping from file names to bytes."""
    settings = settings_of(files.get("problem.json"))
    tables = {name: table(files, name) for name in ("states", "edges", "trajectories", "trajectory_meta")}
    for name in ("states", "edges", "trajectories"):
        need(tables[name] is not None, f"no {name}")
    states = read_states(tables["states"])
    edges = read_edges(tables["edges"], states, settings)
    trajectories, step_columns = read_steps(tables["trajectories"], states, edges)
    meta, goals = {}, None
    if tables["trajectory_meta"] is not None:
        meta, goals = read_meta(tables["trajectory_meta"], trajectories, states)
    check_fit(states, edges, trajectories, goals, settings)
    need(states["names"] is None or settings.get("state_names") is None, "state names twice")
    state_names = states["names"] or names_of(settings, "state_names", states["labels"], states["n"])
    return {
        "discount": settings["discount"],
        "horizon": settings.get("horizon"),
        "n_states": states["n"],
        "n_actions": edges["n"],
        "state_ids": states["labels"],
        "action_ids": edges["labels"],
        "state_names": state_names,
        "action_names": names_of(settings, "action_names", edges["labels"], edges["n"]),
        "feature_names": names_of(settings, "feature_names", edges["feature_names"], len(edges["feature_names"])),
        "transitions": edges["transitions"],
        "features": edges["features"],
        "terminal": states["terminal"],
        "start": states["start"],
        "xy": states["xy"],
        "state_columns": states["columns"],
        "edge_columns": edges["columns"],
        "step_columns": step_columns,
        "trajectory_ids": [one["id"] for one in trajectories],
        "trajectories": [one["states"] for one in trajectories],
        "actions": [one["actions"] for one in trajectories],
        "goals": goals,
        "meta": meta,
    }
