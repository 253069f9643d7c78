"""Validation of trajectories against an MDP: every fault as a record, or an error at the first one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from messirl._text import count_noun
from messirl._types import Flags
from messirl.data.mdp import MDP
from messirl.data.trajectories import Trajectories
from messirl.data.transition_index import entry_keys, look_up, possible_transitions, transition_keys

RIGHT_LENGTH = "a trajectory must have that many, or end earlier in a terminal state"
UNFINISHED = (
    "with discount=1 and no horizon an unfinished trajectory has no feature counts; use objective='choices' and no "
    "penalty on counts (MaxEntIRL), or leave it out"
)


@dataclass(frozen=True)
class Fault:
    """A fault of one step, of one trajectory (step None), or of all of them (trajectory None as well).

    text : holds {0}, {1} in place of `states` and {a} in place of `action`, to be filled with labels
    """

    kind: str
    trajectory: int | None
    step: int | None
    text: str
    remedy: str
    states: tuple[int, ...] = ()
    action: int | None = None

    def what(self, state: Callable[[int], str] = str, action: Callable[[int], str] = str) -> str:
        """Return the text; the two functions give the names of states and actions."""
        taken = "" if self.action is None else action(self.action)
        return self.text.format(*map(state, self.states), a=taken)

    def place(self, name: str, step: int | None) -> str:
        """Return the location as the beginning of a sentence: trajectory and step number."""
        if self.trajectory is None:
            return ""
        return f"trajectory {name} " if step is None else f"trajectory {name}, step {step}: "


def check_trajectories(mdp: MDP, trajectories: Trajectories, name: str = "trajectories") -> None:
    """Raise a ValueError that names the trajectory and the step if `trajectories` cannot come from `mdp`."""
    if not isinstance(mdp, MDP):
        raise TypeError(f"expected an MDP, not {type(mdp).__name__}")
    if not isinstance(trajectories, Trajectories):
        held = hasattr(trajectories, "trajectories")  # a Problem, as Problem.select returns
        remedy = "use its .trajectories" if held else "use Trajectories.from_lists([[...], ...])"
        raise TypeError(f"{name} must be Trajectories, not {type(trajectories).__name__}: {remedy}")
    fault = next(trajectory_faults(mdp, trajectories), None)
    if fault is not None:
        colon = " " if fault.trajectory is None else ": "
        place = fault.place(str(fault.trajectory), fault.step)
        raise ValueError(f"{name}{colon}{place}{fault.what()}: {fault.remedy}")


def trajectory_faults(mdp: MDP, trajectories: Trajectories) -> Iterator[Fault]:
    """Yield all faults, one kind after the other; each kind is searched only when it is requested.

    A step that is already faulty (it leaves a terminal state, a goal or a dead end) is not reported as an impossible
    transition as well. States or actions out of range end the search, since nothing else can be checked then.
    """
    if len(trajectories) == 0:
        return
    wrong = False
    for fault in _out_of_range(mdp, trajectories):
        wrong = True
        yield fault
    if wrong:
        return
    over = np.zeros(trajectories.states.size, dtype=bool)  # steps that leave a state which cannot be left
    yield from _goals(mdp, trajectories)
    yield from _ends(mdp, trajectories, over)
    yield from _moves(mdp, trajectories, over)
    yield from _lengths(mdp, trajectories)


def unfinished(mdp: MDP, trajectories: Trajectories) -> Flags:
    """Return a mask (n,) of the trajectories that stop too early where they must end: with goals, or at discount 1."""
    if trajectories.goals is not None:
        return np.asarray(trajectories.goals != trajectories.last)
    return ~mdp.terminal[trajectories.last] & mdp.must_end


def unfinished_note(mdp: MDP, trajectories: Trajectories) -> str | None:
    """Return a sentence on how many trajectories are unfinished and the consequence; None if none is."""
    n = int(unfinished(mdp, trajectories).sum()) if len(trajectories) else 0
    if not n:
        return None
    where = "a terminal state" if trajectories.goals is None else "their goal"
    return (
        f"{n} of {len(trajectories)} trajectories end before {where}: their choices can be used, but they have no "
        "feature counts"
    )


def check_finished(mdp: MDP, trajectories: Trajectories, whose: str = "", called: Callable[[int], str] = str) -> None:
    """Raise a ValueError that names an unfinished trajectory; `called` gives the name of one by its number."""
    wrong = unfinished(mdp, trajectories)
    if not wrong.any():
        return
    i = int(np.argmax(wrong))
    last = mdp.state_label(int(trajectories.last[i]))
    place = "which is not terminal" if trajectories.goals is None else "not in its goal"
    more = f" ({int(wrong.sum())} are unfinished)" if wrong.sum() > 1 else ""
    raise ValueError(f"trajectory {called(i)}{whose} ends in state {last}, {place}{more}: {UNFINISHED}")


def start_faults(mdp: MDP, trajectories: Trajectories) -> Iterator[Fault]:
    """Yield a fault for every trajectory without a goal that begins in a state where `start` is zero."""
    if mdp.start is None or trajectories.goals is not None or len(trajectories) == 0:
        return
    remedy = "give the state a weight in start, or drop start"
    for i in np.flatnonzero(~(mdp.start[trajectories.first] > 0)).tolist():
        first = int(trajectories.first[i])
        yield Fault("start", i, 0, "it begins in state {0}, where start is 0", remedy, (first,))


def _out_of_range(mdp: MDP, trajectories: Trajectories) -> Iterator[Fault]:
    everywhere = np.ones(trajectories.states.size, dtype=bool)
    for kind, values, n, holds in (
        ("state", trajectories.states, mdp.n_states, everywhere),
        ("action", trajectories.actions, mdp.n_actions, trajectories.leaves),
    ):
        if values is not None:
            wrong = (values < 0) | (values >= n)
            for value, entry in zip(values[wrong], np.flatnonzero(holds)[wrong], strict=True) if wrong.any() else ():
                text = f"{kind} {value} is not one of 0 … {n - 1}"
                yield Fault(kind, *trajectories.locate(entry), text, "correct it")


def _goals(mdp: MDP, trajectories: Trajectories) -> Iterator[Fault]:
    if trajectories.goals is not None and mdp.horizon is not None:
        text = f"have goals, but the MDP has horizon={mdp.horizon}"
        yield Fault("goal and horizon", None, None, text, "a trajectory with a goal ends there; use horizon=None")


def goal_faults(trajectories: Trajectories) -> Iterator[Fault]:
    """Yield a fault for every trajectory that does not end in its goal, if none does: the goals are then wrong."""
    goals = trajectories.goals
    missed = np.zeros(0, dtype=bool) if goals is None else goals != trajectories.last
    if goals is not None and missed.size and missed.all():  # if the goal was passed, going on after it is the fault
        passed = np.logical_or.reduceat(_at_goal(trajectories), trajectories.offsets[:-1])
        remedy = "end it there, or correct the goal"
        for i in np.flatnonzero(missed & ~passed).tolist():
            where = (int(trajectories.last[i]), int(goals[i]))
            yield Fault("goal", i, None, "ends in state {0}, not in its goal {1}", remedy, where)


def _at_goal(trajectories: Trajectories) -> Flags:
    if trajectories.goals is None:
        return np.zeros(trajectories.states.size, dtype=bool)
    return np.asarray(trajectories.states == np.repeat(trajectories.goals, trajectories.lengths))


def _ends(mdp: MDP, trajectories: Trajectories, over: Flags) -> Iterator[Fault]:
    states, left = trajectories.states, trajectories.leaves
    at_goal = _at_goal(trajectories)
    stuck = ~mdp.allowed.any(axis=1) & ~mdp.terminal
    for kind, wrong, text, remedy in (
        ("terminal", left & mdp.terminal[states], "it goes on after terminal state {0}", "cut it there"),
        ("after goal", left & at_goal, "it goes on after its goal {0}", "cut it there"),
        (
            "dead end",
            stuck[states] & ~at_goal,
            "state {0} has no allowed action and is not terminal",
            "make it terminal, or give it a transition",
        ),
    ):
        new = np.flatnonzero(wrong & ~over)
        over |= wrong
        for entry in new.tolist():
            yield Fault(kind, *trajectories.locate(entry), text, remedy, (int(states[entry]),))


def _moves(mdp: MDP, trajectories: Trajectories, over: Flags) -> Iterator[Fault]:
    left, states, actions = np.flatnonzero(trajectories.leaves), trajectories.states, trajectories.actions
    if left.size == 0:
        return
    if actions is None:
        keys, wanted = possible_transitions(mdp).keys, transition_keys(mdp, trajectories)
    else:
        keys = entry_keys(mdp)
        wanted = (states[left] * mdp.n_actions + actions) * mdp.n_states + states[left + 1]
    possible = look_up(keys, wanted)[1]
    for at in np.flatnonzero(~possible & ~over[left]).tolist() if not possible.all() else ():
        entry = int(left[at])
        i, t = trajectories.locate(entry)
        here, there = int(states[entry]), int(states[entry + 1])
        taken = None if actions is None else int(actions[at])
        by = "" if taken is None else " by action {a}"
        kind, text = "move", f"the transition from state {{0}} to {{1}}{by} has probability 0 in the MDP"
        if taken is not None and not mdp.allowed[here, taken]:
            kind, text = "not allowed", f"{text}, which does not allow that action there"
        yield Fault(kind, i, t, text, "correct it, or add the transition", (here, there), taken)


def _lengths(mdp: MDP, trajectories: Trajectories) -> Iterator[Fault]:
    if trajectories.goals is not None:  # with a horizon, goals are a fault already
        return
    ended, lengths = mdp.terminal[trajectories.last], trajectories.lengths
    if mdp.horizon is not None:
        wrong = (lengths > mdp.horizon) | ((lengths < mdp.horizon) & ~ended)
        for i in np.flatnonzero(wrong).tolist():
            text = f"has {count_noun(int(lengths[i]), 'state')}, but horizon={mdp.horizon}"
            yield Fault("length", i, None, text, RIGHT_LENGTH)
