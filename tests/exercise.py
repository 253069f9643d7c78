"""Ask for every compiled loop once, and print what Numba did: run before the tests, so that each is compiled once."""

from __future__ import annotations

import json

import numba
import numba.core.event as event
import numpy as np
import scipy.sparse as sp

from messirl import MDP, Trajectories, optimal_policy, sample, soft_policy, soft_values, state_visitation
from messirl.planning import Planner, iterative_paths, model_for, multithreading, visits
from messirl.planning.batched import batched_expectations
from messirl.planning.goal_derivatives import goals_hessian
from messirl.planning.identifiability import unidentified
from messirl.planning.kernels import batched_bellman, bellman, graph, multi_goal
from messirl.planning.policy_chain import UNSCALED, Chain
from messirl.similarity import DynamicTimeWarping, EditDistance, _alignment_kernels as sequence_loops

compiled = []


class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__name__)

    def on_end(self, happened):
        pass


event.register("numba:compile", Listener())


@numba.njit
def never_kept():
    """Is compiled by every process: the listener hears."""


never_kept()

rng = np.random.default_rng(0)
S, A = 6, 2
slippery = rng.dirichlet(np.ones(S), size=(S, A))
steady = np.zeros((S, A, S))
for s in range(S):
    steady[s, 0, min(s + 1, S - 1)] = steady[s, 1, max(s - 1, 0)] = 1.0
stuck = steady.copy()
stuck[1, 1] = 0.0
stuck[0] = 0.0
end, start, last = np.arange(S) == S - 1, np.full(S, 1 / S), np.eye(S)[S - 2]
by_state, by_step = np.full(S, -2.0), np.full((S, A), -2.0)


def exercise(transitions, reward, start=start, **arguments):
    features = np.ones((*reward.shape, 1))
    mdp = MDP(transitions, features, start=start, **arguments)
    policy = soft_policy(mdp, reward)
    soft_values(mdp, reward)
    state_visitation(mdp, policy)
    visits(mdp, policy)
    optimal_policy(mdp, reward)
    sample(mdp, policy, 3, 4, random_state=0)
    Planner(mdp, "causal", start)(reward)
    unidentified(mdp, start, None)
    return mdp


for transitions in (slippery, steady):
    for reward in (by_state, by_step):
        finite = exercise(transitions, reward, horizon=4, discount=0.9)
        exercise(transitions, reward, horizon=4, discount=0.95, terminal=end)
        exercise(transitions, reward, discount=0.9)
        exercise(transitions, reward, discount=1.0, terminal=end)
        for tilted in (True, False):
            Planner(finite, "noncausal", start, tilted=tilted)(reward)
        soft_policy(finite, reward, "noncausal")
        aimed = MDP(transitions, np.ones((*reward.shape, 1)), discount=1.0)
        sample(aimed, soft_policy(aimed, reward, goal=2), 3, random_state=0, goal=2, start=start)
        trips = Planner.for_goals(aimed, "causal", np.array([0, 1]), np.array([2, 2]), np.full(2, 0.5))
        trips(reward)
        if transitions is steady:  # else every goal has a system of its own
            goals_hessian(trips.model.solve(reward), trips.active_source)
exercise(stuck, by_state, start=last, horizon=4, discount=0.95)
exercise(stuck, by_state, start=last, discount=0.9)
endless = exercise(sp.csr_array(slippery.reshape(S * A, S)), by_state, discount=0.9)
batched_expectations([Planner(endless, "causal", start)], [np.ones(1)])
chain = Chain(endless).follow(model_for(endless).solve(by_state).policy)
for scale in (UNSCALED, np.ones(chain.layout.padded)):
    bellman.contract(*chain._dynamics, scale, chain.layout.pad(start), np.zeros(chain.layout.padded), 1e-3, 10)
iterative_paths.LEAST_WORK = iterative_paths.ADVANTAGE = 0.0
for goals in (np.array([2, 2]), np.array([2, 3])):
    linked = MDP(steady, np.ones((S, A, 1)), discount=1.0)
    Planner.for_goals(linked, "causal", np.array([0, 1]), goals, np.full(2, 0.5))(by_step)
multithreading.STATES = 128
round_about = np.stack([np.eye(300), np.roll(np.eye(300), 1, axis=1)], axis=1)
exercise(round_about, np.full(300, -2.0), start=np.full(300, 1 / 300), horizon=4, discount=0.9)
walks = Trajectories.from_lists([[0, 1, 2], [0, 2]])
for similarity in (EditDistance(), DynamicTimeWarping(np.eye(3))):
    similarity(walks, np.zeros((2, 1)))

every = {**vars(bellman), **vars(batched_bellman), **vars(multi_goal), **vars(graph), **vars(sequence_loops)}.items()
loops_of = ((n, f) for n, f in every if hasattr(f, "stats") and hasattr(f, "signatures"))
dispatchers = {n: f for n, f in loops_of if f.targetoptions.get("inline") != "always"}  # the others are parts of these
print(
    json.dumps(
        {
            "compiled": compiled,
            "misses": {n: sum(f.stats.cache_misses.values()) for n, f in dispatchers.items()},
            "hits": {n: sum(f.stats.cache_hits.values()) for n, f in dispatchers.items()},
            "used": {n: len(f.signatures) for n, f in dispatchers.items()},
        }
    )
)
