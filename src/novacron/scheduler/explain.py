"""Explains decisions to people: in one line, and host by host."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from novacron.scheduler.engine import FITS, Decision, Placed, Survey
from novacron.scheduler.filter import Refused
from novacron.scheduler.filters import FILTERS

__all__ = ["Rated", "Refusal", "one_line", "rated", "refusals"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one host was out of the question: the first filter that refused it, and its words."""

    host: str
    filter: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Rated:
    """How one host that could take the machine was rated, by score and in all."""

    host: str
    score: float
    scores: Mapping[str, float]


def one_line(decision: Decision) -> str:
    """Say what was decided and why, however many hosts there are."""
    survey = decision.survey
    if isinstance(decision, Placed):
        scores = ", ".join(f"{name} {rating:.2f}" for name, rating in decision.scores.items())
        fitting = f"{survey.fitting}/{survey.known} hosts fit"
        return f"{fitting}: {decision.host} is best with {decision.score:.2f} ({scores})"
    if not survey.known:
        return "no host is declared"
    return f"0/{survey.known} hosts fit: {', '.join(_groups(survey))}"


def refusals(decision: Decision) -> tuple[Refusal, ...]:
    """Return every refused host with its reason, in the order of names."""
    survey = decision.survey
    found: list[Refusal] = []
    for number, refusing in enumerate(FILTERS):
        for row in np.flatnonzero(survey.verdicts == number):
            one = _refused(survey, np.array([row]))
            name = one.hosts[0].name
            sentence = f"host {name} {refusing.phrase(survey.asked, one)}"
            found.append(Refusal(name, refusing.name, sentence))
    return tuple(sorted(found, key=lambda refusal: refusal.host))


def rated(decision: Decision) -> tuple[Rated, ...]:
    """Return every host that could take the machine with its ratings, the best first."""
    if not isinstance(decision, Placed):
        return ()
    found: list[Rated] = []
    for row in np.flatnonzero(decision.survey.verdicts == FITS):
        host = decision.survey.hosts[row]
        assert host is not None, "a vacant row never fits"
        scores = {name: float(rating[row]) for name, rating in decision.ratings.items()}
        found.append(Rated(host.name, float(decision.total[row]), scores))
    return tuple(sorted(found, key=lambda each: (-each.score, each.host)))


def _groups(survey: Survey) -> list[str]:
    """Return one phrase per filter that refused anything, the most frequent first."""
    counted: list[tuple[int, str]] = []
    for number, refusing in enumerate(FILTERS):
        rows = np.flatnonzero(survey.verdicts == number)
        if rows.size:
            phrase = refusing.phrase(survey.asked, _refused(survey, rows))
            counted.append((rows.size, f"{rows.size} {phrase}"))
    return [phrase for _, phrase in sorted(counted, key=lambda group: -group[0])]


def _refused(survey: Survey, rows: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> Refused:
    hosts = [host for host in map(survey.hosts.__getitem__, rows) if host is not None]
    return Refused(hosts, rows, survey.free[:, rows])
