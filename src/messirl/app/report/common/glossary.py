"""Glossary of the terms on pages: every page ends with those that occur on it, and links to them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from messirl.app.report.common.markup import Html, tag
from messirl.estimators.registry import DEFAULT_POOLING_WEIGHT, METHODS

LABEL = {name: method.label for name, method in METHODS.items()}
TERMS = {
    "nats per step": "The unit of scores: the natural logarithm of the probability that a model gave to the observed "
    "choice, averaged over all steps. A gain of 0.1 nats per step makes the choices 1.105 times as probable on "
    "average.",
    "95 % interval": "In repeated samples, 95 % of such intervals contain the true value. Where the interval of a "
    "difference includes zero, the direction of the difference is not clear.",
    "paired": "Two methods are compared on the same trajectories (or runs), one by one. What makes a trajectory hard "
    "for both methods cancels in the difference.",
    "held-out": "Not used for fitting, so that predicting it is a fair test.",
    "expert": "A trajectory of a demonstrator whose reward is to be learnt.",
    "unlabelled": "A trajectory of unknown quality: it may or may not be an expert’s.",
    "weight θ": "The change of the reward per unit of a feature. The reward of a state or step is the sum of its "
    "features times their weights; θ is the vector of all weights.",
    "contribution": "A weight times the spread of its feature over the states or steps that the model expects to "
    "visit. It does not depend on the unit of the feature.",
    "robust std. error": "The sandwich standard error, which takes whole trajectories as independent, not single "
    "steps. For a penalised fit it does not include the bias of the penalty towards zero.",
    "penalty": "A term subtracted from the log-likelihood: for large weights, or for weights that give similar "
    "trajectories different rewards. It stabilises a fit to few trajectories and shrinks weights towards zero.",
    "λ0": "The strength of the penalty; 0 means no penalty.",
    "similarity": "A measure of how alike the feature counts of two trajectories are. MESSI’s penalty draws the "
    "rewards of similar trajectories together.",
    LABEL["MESSI"]: "Maximum entropy semi-supervised inverse reinforcement learning: maximum entropy inverse "
    "reinforcement learning with a penalty that draws the rewards of similar trajectories together, expert or "
    "unlabelled.",
    "MESSIMAX": "MESSI with further expert trajectories as the unlabelled ones: the best case.",
    "μ1": "Unlabelled trajectories of which a share ν follow the expert’s reward. The rest follow another reward, θ1.",
    "μ2": "Like μ1, but the rest follow the reward θ2 instead of θ1.",
    "μ3": "Unlabelled trajectories that follow only θ1 and θ2, none the expert’s reward: the unfavourable case.",
    "ν": "The share of unlabelled trajectories that follow the expert’s reward.",
    LABEL["MaxEnt"]: "Maximum entropy inverse reinforcement learning from the experts only, without a penalty unless "
    "one is named.",
    "FittedMESSI": "MESSI for unknown transitions: the dynamics are estimated from all recordings.",
    "fitted MaxEnt-IRL": "FittedMESSI without a penalty, from the experts’ recordings only; the dynamics are estimated "
    "from these, too.",
    "MaxEnt, dynamics of all": "A reward learnt from the experts only, without a penalty, with dynamics estimated from "
    "all recordings.",
    LABEL["RidgeStd"]: "MaxEnt-IRL with an L2 penalty on standardised weights: each weight times the spread of its "
    "feature.",
    LABEL["Ridge"]: "An L2 (ridge) penalty on the weights. As the name of a method: MaxEnt-IRL with this penalty, from "
    "the experts only unless stated otherwise.",
    LABEL["Complete"]: "MESSI with all similarities equal. Comparing it with MESSI shows whether it matters which "
    "trajectories are similar.",
    LABEL["Reference"]: "The prior policy: how the unlabelled trajectories usually choose in each state. The reward "
    "describes how the experts depart from it. As the name of a method: MaxEnt-IRL with this prior policy.",
    LABEL[
        "LightPooling"
    ]: f"Weighted pooling: every unlabelled trajectory counts as {DEFAULT_POOLING_WEIGHT:g} of an expert trajectory "
    "unless another weight is given.",
    LABEL["Pooling"]: "Every unlabelled trajectory counts as a full expert trajectory.",
    LABEL["EM"]: "Expectation maximisation: unlabelled trajectories are weighted by their likelihood under the current "
    "reward, and the reward is fitted again, until it no longer changes.",
    LABEL["AbbeelNg"]: "Apprenticeship learning: a mixture of policies whose feature counts match those of the "
    "experts, found by projection.",
    LABEL["MaxMargin"]: "Apprenticeship learning: a mixture of policies whose feature counts are as close to the "
    "experts’ as those of any mixture, found by maximising a margin.",
    LABEL["SSIRL"]: "Semi-supervised apprenticeship learning: the reward separates the experts from the policies found "
    "so far, with unlabelled trajectories outside of the margin.",
    LABEL["MWAL"]: "A mixture of policies that does no worse than the experts under any possible reward, found by "
    "multiplicative updates of feature weights.",
    LABEL["LPAL"]: "A policy that does no worse than the experts under any possible reward, found by linear "
    "programming.",
    LABEL["NgRussell"]: "The reward under which the experts outperform other policies by the largest margin.",
    LABEL["RelativeEntropy"]: "Model-free MaxEnt-IRL: recorded trajectories of a known sampling policy are weighted by "
    "importance, so that the dynamics need not be known.",
    LABEL["Bayesian"]: "Samples from the posterior of the reward, for experts that choose actions of higher value more "
    "often.",
    LABEL["Cloning"]: "The frequency of each of the experts’ actions in each state. It learns no reward.",
    LABEL["DWBC"]: "Behaviour cloning of all trajectories, weighted by a classifier that separates experts from "
    "unlabelled trajectories and knows the policy’s probabilities.",
    LABEL["ISWBC"]: "Behaviour cloning of all trajectories, where a choice weighs more the more likely it is among the "
    "experts.",
    LABEL["DemoDICE"]: "The policy whose visits are close to the experts’, with a penalty on the distance from those "
    "of all trajectories.",
    LABEL["OwnPolicy"]: "MESSI whose penalty compares recorded trajectories with those of the learnt policy.",
    LABEL["Several"]: "MESSI with one θ per group of experts, each shrunk towards a shared θ.",
    LABEL["Mixture"]: "MESSI with latent groups of experts, which it finds itself, each with its own θ.",
    LABEL["uniform"]: "Chance: every allowed action has the same probability.",
    "agreement with the expert policy": "How much better a model fitted to the experts only predicts a trajectory than "
    "the uniform policy does: the log-likelihood ratio in nats per step. Files call it likeness.",
    "leaning": "Unlabelled trajectories lean towards the experts if their steps are more likely, on average, under the "
    "expert policy than under the uniform policy.",
    "influence": "How far θ moves if one trajectory is left out and the model is fitted again.",
    "share of the penalty": "The part of MESSI’s penalty that comes from pairs that include a given trajectory.",
    "degrees of freedom": "Of a test: the number of weights left out of the smaller model. Of a robust error: those of "
    "its Student’s t. Of a penalty: the number of directions of θ that the experts still determine.",
    "fixed default": "The candidate that is kept unless another is significantly better at 99.9 %: light pooling with "
    "a light penalty or, without unlabelled trajectories, the light penalty only.",
    "exact optimum": "The maximum of the objective to numerical precision. The paper takes a fixed number of steps "
    "instead.",
    "fixed steps": "The paper’s solver: a fixed number of gradient steps of one size. It may stop before the optimum "
    "or oscillate around it.",
    "nested": "Nested cross-validation: the whole procedure, including the choice, is scored on experts that were not "
    "used for the choice.",
}


def anchor(term: str) -> str:
    """Return the HTML anchor of a term."""
    return "term-" + re.sub(r"[^a-z0-9θλμν]+", "-", term.lower()).strip("-")


def link_terms(text: str, seen: set[str] | None = None) -> Html:
    """Link the first occurrence of every term in a text to its explanation.

    seen : terms that have a link already; those linked here are added
    """
    parts: list[str] = []
    at, seen = 0, set() if seen is None else seen
    for found in _PATTERN.finditer(text):
        term = _BY_WORD[found[0].lower()]
        if term in seen:
            continue
        seen.add(term)
        link = tag("a", found[0], href=f"#{anchor(term)}", class_="term")
        parts += [html.escape(text[at : found.start()]), link]
        at = found.end()
    return Html("".join([*parts, html.escape(text[at:])]))


def find_terms(text: str) -> list[str]:
    """Return the terms that occur in a text, in the order of the glossary."""
    here = {_BY_WORD[found[0].lower()] for found in _PATTERN.finditer(text)}
    return [term for term in TERMS if term in here]


def definition_list(terms: Sequence[str]) -> Html:
    """Return terms with their explanations as a definition list."""
    both = ((tag("dt", term, id=anchor(term)), tag("dd", TERMS[term])) for term in terms)
    return tag("dl", *(part for pair in both for part in pair))


def _words(term: str) -> list[str]:
    """Return the spellings of a term: itself, plurals, symbols and synonyms."""
    more = {
        "nats per step": ["nats"],
        "95 % interval": ["95 %"],
        "held-out": ["held out"],
        "weight θ": ["θ", "weights"],
    }
    more |= {"expert": ["experts"], "similarity": ["similarities"], "contribution": ["contributions"]}
    more |= {
        LABEL["LightPooling"]: [LABEL["LightPoolingStd"]],
        LABEL["Reference"]: [LABEL["ReferenceStd"], "prior policy"],
    }
    more |= {"robust std. error": ["robust errors", "robust se"], "agreement with the expert policy": ["likeness"]}
    return [term, *more.get(term, [])]


_BY_WORD = {word.lower(): term for term in TERMS for word in _words(term)}
_PATTERN = re.compile(
    r"(?<![\w-])(?:" + "|".join(re.escape(word) for word in sorted(_BY_WORD, key=len, reverse=True)) + r")(?![\w-])",
    re.IGNORECASE,
)
