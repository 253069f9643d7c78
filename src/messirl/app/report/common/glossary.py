"""The words of pages, explained once; every page ends with those that occur on it, and links to them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from messirl.app.report.common.markup import Html, tag
from messirl.estimators.registry import LIGHT, METHODS

LABEL = {name: method.label for name, method in METHODS.items()}
TERMS = {
    "nats a step": "The unit of predictions: the natural logarithm of the probability that a model gave to what was "
    "done next, on average over all steps. 0.1 nats a step more is a factor of 1.105 in every probability.",
    "95 % interval": "Of twenty such intervals, drawn from so many new samples, nineteen hold what is true. One that "
    "includes zero leaves open which way a difference goes.",
    "paired": "Two methods are compared on the same trajectories (or runs), one by one: what makes a trajectory hard "
    "for both cancels in the difference.",
    "held-out": "Kept away from learning, so that a prediction of it is an honest test.",
    "expert": "A trajectory of somebody whose aims are to be learnt.",
    "unlabelled": "A trajectory of unknown quality: it may be an expert’s, or not.",
    "weight θ": "What one unit of a feature adds to the reward of a state or step; θ is all of them together.",
    "contribution": "A weight times how much its feature varies over what the model expects to meet: what the feature "
    "decides, whatever its unit.",
    "robust std. error": "A standard error (the sandwich) that counts whole trajectories as independent, not single "
    "choices. Of a fit with a penalty it leaves out how far the penalty draws weights towards zero.",
    "penalty": "What is taken from the likelihood for large weights, or for weights that tell similar trajectories "
    "apart: it steadies a fit to few trajectories, and draws weights towards zero.",
    "λ0": "The strength of the penalty; 0 is none.",
    "similarity": "A number for how alike two trajectories are, by their feature counts. MESSI’s penalty wants the "
    "reward of similar trajectories to be alike.",
    LABEL["MESSI"]: "Maximum entropy semi-supervised inverse reinforcement learning: the reward that makes the experts "
    "likely, with a penalty on telling similar trajectories apart, experts’ or unlabelled ones.",
    "MESSIMAX": "MESSI fed with more trajectories of the expert as the unlabelled ones: the best that they could be.",
    "μ1": "Unlabelled trajectories of which a share ν are good, drawn as the expert’s, and the others are of people "
    "with a reward of their own, θ1.",
    "μ2": "As μ1, with others, whose reward is θ2, in the place of those of θ1.",
    "μ3": "Unlabelled trajectories without a good one, of θ1 and θ2 alone: the unfavourable case.",
    "ν": "The share of good trajectories, the expert’s own, among the unlabelled ones.",
    LABEL["MaxEnt"]: "Maximum entropy inverse reinforcement learning from the experts alone; without a penalty "
    "where none is named.",
    "FittedMESSI": "MESSI where the moves are not known: where they lead is learnt from all recordings.",
    "fitted MaxEnt-IRL": "FittedMESSI without a penalty, from the experts’ recordings alone: where moves lead is "
    "learnt from these, too.",
    "MaxEnt, dynamics of all": "A reward from the experts alone, without a penalty; where moves lead, from all "
    "recordings.",
    LABEL["RidgeStd"]: "MaxEnt-IRL with a penalty on the squares of weights, each in units of its feature’s spread.",
    LABEL["Ridge"]: "A penalty on the squares of all weights, of MaxEnt-IRL on the experts alone where nothing else "
    "is said: what a sceptic tries first.",
    LABEL["Complete"]: "MESSI with all similarities equal, which shows whether it matters who is similar to whom.",
    LABEL[
        "Reference"
    ]: "What is usual among the unlabelled trajectories, from which the experts’ policy is told apart.",
    LABEL["LightPooling"]: f"Every unlabelled trajectory counts as an expert’s, but little: {LIGHT:g} where nothing "
    "else is said.",
    LABEL["Pooling"]: "Every unlabelled trajectory counts as an expert’s, in full.",
    LABEL["EM"]: "Unlabelled trajectories are weighed by how likely the present reward makes them, again and again.",
    LABEL["AbbeelNg"]: "Policies that are mixed until their feature counts are those of the experts.",
    LABEL[
        "MaxMargin"
    ]: "Policies that are mixed so that their feature counts come as close to the experts’ as any mixture of them can.",
    LABEL["SSIRL"]: "Max-margin learning that unlabelled trajectories steer, by what the experts do and what policies "
    "found so far do.",
    LABEL["MWAL"]: "A mixture of policies that does no worse than the experts under any possible reward, found by "
    "weighing features again and again.",
    LABEL["LPAL"]: "One policy that does no worse than the experts under any possible reward, found by a linear "
    "programme.",
    LABEL["NgRussell"]: "The reward under which the experts do better than other policies by as much as possible.",
    LABEL["RelativeEntropy"]: "MaxEnt-IRL without known dynamics: recorded trajectories of a base policy are weighed "
    "instead.",
    LABEL["Bayesian"]: "Rewards drawn from their posterior, if experts prefer what is worth more.",
    LABEL["Cloning"]: "No reward: what the experts did in each state, counted.",
    LABEL["DWBC"]: "Cloning of everyone, weighed by a classifier that tells experts from others and knows the policy.",
    LABEL["ISWBC"]: "Cloning of everyone, weighed by how much likelier a choice is among the experts’.",
    LABEL["DemoDICE"]: "The policy whose visits are near the experts’, and not far from everyone’s.",
    LABEL["OwnPolicy"]: "MESSI whose penalty compares recorded trajectories with those of the policy that is learnt.",
    LABEL["Several"]: "MESSI with a θ for each group of experts, drawn towards one that they share.",
    LABEL["Mixture"]: "MESSI with groups of experts that it finds itself, each with a θ of its own.",
    LABEL["uniform"]: "Chance: every allowed action is as likely as any other.",
    "likeness": "How much better, in nats a step, a trajectory is explained by what the experts alone teach than by "
    "chance. Above zero it goes where an expert would.",
    "leaning": "Trajectories lean towards the experts if their steps are likelier under what the experts teach than "
    "by chance, if only a little.",
    "influence": "How far θ moves if one trajectory is left out and everything is fitted again.",
    "share of the penalty": "How much of MESSI’s penalty comes from the pairs that a trajectory is part of.",
    "degrees of freedom": "Of a test: how many weights the smaller model does without. Of a penalty: how many "
    "directions of θ the experts still decide beside it.",
    "fixed default": "What is taken unless something else is clearly better, at 99.9 %: light pooling with a light "
    "penalty; without unlabelled trajectories, the light penalty alone.",
    "exact optimum": "The top of the objective, found to the last digits; the paper takes a fixed number of steps.",
    "fixed steps": "The paper’s solver: so many steps of one size uphill. It may stop before the top, or swing around "
    "it.",
    "nested": "The whole procedure, choosing included, judged on experts that the choice has not seen.",
}


def anchor(term: str) -> str:
    """Where a term is explained."""
    return "term-" + re.sub(r"[^a-z0-9θλμν]+", "-", term.lower()).strip("-")


def linked(text: str, seen: set[str] | None = None) -> Html:
    """The text with the first occurrence of every term a link to its explanation.

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


def occurring(text: str) -> list[str]:
    """The terms that occur in a text, in the order of the glossary."""
    here = {_BY_WORD[found[0].lower()] for found in _PATTERN.finditer(text)}
    return [term for term in TERMS if term in here]


def explained(terms: Sequence[str]) -> Html:
    """A list of terms with their explanations."""
    both = ((tag("dt", term, id=anchor(term)), tag("dd", TERMS[term])) for term in terms)
    return tag("dl", *(part for pair in both for part in pair))


def _words(term: str) -> list[str]:
    """How a term is written: also as its first words, in the plural, or by its symbol alone."""
    more = {"nats a step": ["nats"], "95 % interval": ["95 %"], "held-out": ["held out"], "weight θ": ["θ", "weights"]}
    more |= {"expert": ["experts"], "similarity": ["similarities"], "contribution": ["contributions"]}
    more |= {LABEL["LightPooling"]: [LABEL["LightPoolingStd"]], LABEL["Reference"]: [LABEL["ReferenceStd"]]}
    more |= {"robust std. error": ["robust errors", "robust se"], "share of the penalty": []}
    return [term, *more.get(term, [])]


_BY_WORD = {word.lower(): term for term in TERMS for word in _words(term)}
_PATTERN = re.compile(
    r"(?<![\w-])(?:" + "|".join(re.escape(word) for word in sorted(_BY_WORD, key=len, reverse=True)) + r")(?![\w-])",
    re.IGNORECASE,
)
