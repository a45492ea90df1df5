"""Compares what the product and logind showed with what the evidence says was true. Pure.

The truth is a list of moments, each the time of its first evidence and what holds from then on. A disagreement is a run
of consecutive looks that all contradict the truth; only its length counts, as the requirement is stated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logind import KINDS, Sample

STATE_SECONDS_MAX = 1.0
TAKE_SECONDS_MAX = 0.3
RELEASE_SECONDS_MAX = 1.0
# A witness that looked away for longer than this proves nothing.
SAMPLE_GAP_SECONDS_MAX = 0.25
OBSERVATION_GAP_SECONDS_MAX = 1.0


@dataclass(frozen=True)
class Moment:
    at: float
    name: str
    """What happened, for people."""
    state: str | None
    """`None`: no statement."""
    demand: bool | None
    session: str | None = None
    """Whose state it is; `None`: whoever plays."""


@dataclass(frozen=True)
class Observation:
    """What `status --json` said about the session; true at some time between `asked` and `told`."""

    asked: float
    told: float
    state: str


@dataclass(frozen=True)
class Lag:
    """The longest disagreement of one kind."""

    seconds: float
    what: str


def truth_at(moments: list[Moment], time: float) -> Moment | None:
    found = None
    for moment in moments:
        if moment.at <= time:
            found = moment
    return found


def longest(runs: Iterable[tuple[float, float, str]]) -> Lag:
    return max((Lag(end - start, what) for start, end, what in runs), key=lambda lag: lag.seconds, default=Lag(0.0, "never"))


def runs_of(looks: Iterable[tuple[float, str | None]]) -> list[tuple[float, float, str]]:
    """Runs of consecutive looks with the same complaint, as (first, last, complaint)."""
    runs: list[tuple[float, float, str]] = []
    previous: str | None = None
    for at, complaint in looks:
        if complaint is not None:
            if complaint == previous:
                runs[-1] = (runs[-1][0], at, complaint)
            else:
                runs.append((at, at, complaint))
        previous = complaint
    return runs


def state_lag(moments: list[Moment], observations: list[Observation]) -> Lag:
    """An observation complains only if it is wrong for the whole time in which it was made."""

    def complaint(seen: Observation) -> str | None:
        at_start, at_end = truth_at(moments, seen.asked), truth_at(moments, seen.told)
        if at_start is None or at_end is None:
            return None
        for moment in (m for m in moments if at_start.at <= m.at <= at_end.at):
            if moment.state in (None, seen.state):
                return None
        return f"shown {seen.state}, true {at_end.state} ({at_end.name})"

    return longest(runs_of((seen.asked, complaint(seen)) for seen in observations))


def hold_lags(moments: list[Moment], samples: list[Sample], pids: set[int]) -> tuple[Lag, Lag]:
    """The longest time in which (demand was not held, a hold was kept without demand)."""

    def untaken(sample: Sample) -> str | None:
        moment = truth_at(moments, sample.at)
        missing = KINDS - sample.held_by(pids)
        if moment is None or not moment.demand or not missing:
            return None
        return f"not held though {moment.name}"

    def unreleased(sample: Sample) -> str | None:
        moment = truth_at(moments, sample.at)
        held = sample.held_by(pids)
        if moment is None or moment.demand is not False or not held:
            return None
        return f"held though {moment.name}"

    return longest(runs_of((s.at, untaken(s)) for s in samples)), longest(runs_of((s.at, unreleased(s)) for s in samples))


def problems(
    moments: list[Moment], observations: list[Observation], samples: list[Sample], pids: set[int],
    pauses: Sequence[tuple[float, float]] = (),
) -> list[str]:  # fmt: skip
    """Everything that is not as required; empty is a pass. `pauses`: from when to when there was no daemon to ask."""
    return state_problems(moments, observations, pauses) + hold_problems(moments, samples, pids)


def hold_problems(moments: list[Moment], samples: list[Sample], pids: set[int]) -> list[str]:
    found = []
    untaken, unreleased = hold_lags(moments, samples, pids)
    if untaken.seconds > TAKE_SECONDS_MAX:
        found.append(f"inhibitor wrong for {untaken.seconds:.2f} s: {untaken.what}")
    if unreleased.seconds > RELEASE_SECONDS_MAX:
        found.append(f"inhibitor wrong for {unreleased.seconds:.2f} s: {unreleased.what}")
    if len(samples) < 2:
        found.append("the sampler saw nothing")
    gap = max((b.at - a.at for a, b in zip(samples, samples[1:])), default=0.0)
    if gap > SAMPLE_GAP_SECONDS_MAX:
        found.append(f"the sampler looked away for {gap:.2f} s: this run proves nothing about the inhibitor")
    return found


def state_problems(
    moments: list[Moment], observations: list[Observation], pauses: Sequence[tuple[float, float]] = ()
) -> list[str]:  # fmt: skip
    """The same about the states of one session."""
    found = []
    state = state_lag(moments, observations)
    if state.seconds > STATE_SECONDS_MAX:
        found.append(f"state wrong for {state.seconds:.2f} s: {state.what}")
    gaps = [(a.asked, b.told) for a, b in zip(observations, observations[1:])]
    unpaused = [(a, b) for a, b in gaps if not any(a < back and down < b for down, back in pauses)]
    unseen = max((b - a for a, b in unpaused), default=0.0)
    if unseen > OBSERVATION_GAP_SECONDS_MAX:
        found.append(f"no answer to `status` for {unseen:.2f} s: this run proves nothing about the state")
    for moment, following in zip(moments, [*moments[1:], None]):
        until = following.at if following else float("inf")
        if moment.state is None or until - moment.at <= 2 * STATE_SECONDS_MAX:
            continue
        if not any(moment.at <= o.asked and o.told < until and o.state == moment.state for o in observations):
            found.append(f"{moment.state} was never shown ({moment.name})")
    return found
