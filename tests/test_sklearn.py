"""scikit-learn's ways: parameters of similarities, plain lists, its model selection, and what a notebook shows."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from worlds import drawn, random_mdp

from messirl import MESSI, MESSICV, MaxEntIRL, Trajectories, estimation_table, feature_counts
from messirl._defaults import SIMILARITIES
from messirl.app.cli._options import add_model
from messirl.app.cli._parser import Parser
from messirl.selection import Adapted
from messirl.similarity import RBF, FisherKernel, Similarity
from messirl.similarity.base import as_similarity
from messirl.similarity.kernels import DEFAULT

HOSTILE = "<script>alert('1')</script>"


@pytest.fixture(scope="module")
def world():
    mdp = random_mdp(discount=0.8, horizon=6, start=np.full(5, 0.2), feature_names=[HOSTILE, "b", "c"])
    return mdp, drawn(mdp, [1.0, -1.0, 0.5], 12, 0), drawn(mdp, [0.5, -0.5, 0.0], 15, 1)


# ------------------------------------------------------------ parameters


def test_a_parameter_of_the_similarity_is_set_and_the_shared_default_stays():
    model = MESSI().set_params(similarity__sigma=2.0, lambda0=0.3)
    assert model.similarity == RBF(2.0, standardise=True)
    assert model.lambda0 == 0.3
    assert DEFAULT == RBF("median", standardise=True) == MESSI().similarity
    assert model.get_params()["similarity__sigma"] == 2.0
    assert repr(model) == "MESSI(lambda0=0.3, similarity=RBF(sigma=2.0, standardise=True))"
    assert MESSI("exponential").set_params(similarity__scale=3.0).similarity.scale == 3.0


def test_an_unknown_parameter_of_a_similarity_is_answered_with_those_there_are():
    with pytest.raises(ValueError, match="RBF has no parameter 'width'; there are: sigma, standardise, tol"):
        MESSI().set_params(similarity__width=1.0)


def test_a_clone_keeps_its_similarity_also_one_that_holds_a_fitted_model(world):
    mdp, expert, _ = world
    kernel = FisherKernel(MaxEntIRL().fit(mdp, expert))
    assert clone(MESSI(kernel)).similarity.model.converged_
    model = MESSI(RBF(3.0))
    assert clone(model).get_params() == model.get_params()


def test_a_similarity_of_ones_own_has_parameters_too():
    class OfLengths(Similarity):
        def __init__(self, scale=1.0):
            self.scale = scale

    assert OfLengths(2.0).get_params() == {"scale": 2.0}
    assert MESSI(OfLengths()).set_params(similarity__scale=5.0).similarity.scale == 5.0


# ------------------------------------------------------------ names


def test_every_name_is_a_similarity_in_python_and_in_commands(world):
    made = Parser()
    add_model(made)
    option = next(one for one in made._actions if one.dest == "similarity")
    assert tuple(option.choices) == (*SIMILARITIES, "dtw")  # which needs to know where states are
    assert as_similarity("rbf") == DEFAULT
    for name in SIMILARITIES:
        assert MESSI(name, max_iter=1, tol=1e9).fit(*world).penalty_matrix_.shape == (3, 3)


def test_a_misspelt_name_is_answered_with_the_one_that_was_meant(world):
    with pytest.raises(ValueError, match=r"similarity='rbff': choose one of 'rbf', .*; did you mean 'rbf'"):
        MESSI("rbff").fit(*world)


# ------------------------------------------------------------ lists


def test_lists_of_states_are_trajectories_without_actions(world):
    mdp, expert, others = world
    bare = Trajectories(expert.states, expert.offsets)
    lists, more = ([one.states.tolist() for one in some] for some in (expert, others))
    by_lists = MESSI().fit(mdp, lists, more)
    by_sets = MESSI().fit(mdp, bare, Trajectories(others.states, others.offsets))
    np.testing.assert_array_equal(by_lists.theta_, by_sets.theta_)
    assert by_lists.score(lists) == by_sets.score(bare)
    np.testing.assert_array_equal(feature_counts(mdp, np.array(lists)), feature_counts(mdp, bare))


def test_a_list_of_single_trajectories_keeps_actions_and_goals():
    from messirl.data.trajectories import as_trajectories

    whole = Trajectories.from_lists([[0, 1, 2], [1, 2]], actions=[[1, 0], [1]], goals=[2, 2])
    assert as_trajectories(list(whole)) == whole


AMBIGUOUS = {
    "flat": ([0, 1, 2], "expert is one flat list: give a list of trajectories"),
    "pairs": ([(0, 1), (1, 2)], "expert is a list of pairs, which may be"),
    "array of pairs": (np.zeros((3, 2), dtype=int), "expert is a list of pairs, which may be"),
    "labels": ([["a", "b"]], "trajectory 0 must hold whole numbers"),
    "with actions": ([([0, 1], [1], 0)], "trajectory 0 must be a flat sequence of whole numbers"),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_a_list_that_may_mean_several_things_is_refused(world, case):
    given, said = AMBIGUOUS[case]
    with pytest.raises((TypeError, ValueError), match=said):
        MaxEntIRL().fit(world[0], given)


# ------------------------------------------------------------ model selection


def test_a_grid_search_finds_what_held_out_scores_say(world):
    mdp, expert, others = world
    grid = {"estimator__lambda0": [0.01, 1e6], "estimator__similarity__sigma": [1.0, 5.0]}
    search = GridSearchCV(Adapted(MESSI(), mdp, others), grid, cv=3).fit(expert)
    found = search.cv_results_["mean_test_score"]
    model = MESSI(RBF(5.0, standardise=True), lambda0=1e6).fit(mdp, expert[4:], others)
    assert search.cv_results_["split0_test_score"][-1] == pytest.approx(model.score(expert[:4]))
    assert search.best_score_ == found.max() > found.min()
    assert search.best_estimator_.estimator_.mdp_ is not None


def test_groups_are_held_out_whole_and_nothing_is_copied(world):
    mdp, expert, _ = world
    adapted = Adapted(MaxEntIRL(), mdp)
    assert clone(adapted).mdp is mdp
    groups = np.repeat([0, 1, 2], 4)
    scores = cross_val_score(adapted, expert, cv=GroupKFold(3), groups=groups)
    own = [MaxEntIRL().fit(mdp, expert[groups != g]).score(expert[groups == g]) for g in range(3)]
    np.testing.assert_allclose(sorted(scores), sorted(own))


# ------------------------------------------------------------ notebooks


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.links = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_what_a_notebook_shows_is_small_closed_and_escaped(world):
    mdp, expert, others = world
    fitted, chosen = MaxEntIRL().fit(mdp, expert), MESSICV(lambdas=[0.1]).fit(mdp, expert, others)
    shown = [mdp, expert, MESSI(), fitted, chosen, chosen.validation_, chosen.use_, estimation_table(fitted, expert)]
    for one in shown:
        found = Tags(one._repr_html_())
        assert not found.open
        assert found.seen <= {
            "div",
            "b",
            "span",
            "table",
            "thead",
            "tbody",
            "tfoot",
            "tr",
            "th",
            "td",
            "details",
            "summary",
        }
        assert not found.links
        assert len(one._repr_html_()) < 12_000
    assert "&lt;script&gt;" in fitted._repr_html_()
    assert fitted._repr_mimebundle_()["text/html"] == fitted._repr_html_()
    assert "not fitted" in MESSI()._repr_html_()
