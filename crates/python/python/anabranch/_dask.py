"""Sweeps past one machine: jobs go to the workers of Dask distributed, rows come back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import _anabranch as native
from ._error import Error, missing
from ._policies import Brought

SECONDS_PER_JOB = 0.5
"""What a job should take: long against the way there and back, short against a lost worker."""
JOBS_PER_THREAD = 3
"""Jobs that are under way for each thread of the cluster: one that runs, and what is next."""
MOST_RUNS = 1000
"""Runs in one job, at most."""
NOTE = "in a policy: "
"""How the note begins that the compiled part adds to what a policy raises."""
TRIES = 10
"""How often a job is handed out whose worker is lost, beside what the scheduler itself tries again."""


def make(letter: str, policies: tuple[Brought, ...] = ()) -> tuple[bytes, float]:
    """On a worker: the rows of a job, and how long it took in seconds."""
    began = time.perf_counter()
    rows = native.work_job(letter, policies)
    return rows, time.perf_counter() - began


def drive(
    made: native.Sweep,
    client: Any,
    shard: tuple[int, int],
    show: Callable[[int, int], object] | None,
    policies: tuple[Brought, ...] = (),
) -> None:
    """Has all runs of a shard that are not done made by the workers of a client.

    Which worker makes which run, how often, and in which order does not show in the rows: a job is complete in itself, rows are
    kept by what they depend on, and those that come twice count once.
    """
    try:
        from distributed import as_completed
    except ImportError:
        raise missing("distributed", "dask", "client=") from None
    flow = _Flow(made, client, shard, show, policies)
    done: Any = as_completed()  # type: ignore[no-untyped-call]
    try:
        flow.hand_out(done)
        while flow.out:
            future = next(done)
            flow.take_in(future, done)
            flow.hand_out(done)
    finally:
        # Whatever is left is of no use to anybody: we were stopped, or something is wrong.
        if flow.out:
            client.cancel([*flow.out], force=True)
        made.sync()


class _Flow:
    """What is under way."""

    def __init__(
        self,
        made: native.Sweep,
        client: Any,
        shard: tuple[int, int],
        show: Callable[[int, int], object] | None,
        policies: tuple[Brought, ...],
    ) -> None:
        self.made, self.client, self.show, self.policies = made, client, show, policies
        self.out: dict[Any, _Job] = {}
        self.again: list[_Job] = []
        self.runs = 1
        self.total, self.count = made.begin(shard), 0

    def hand_out(self, done: Any) -> None:
        """Jobs, as long as there are not enough under way."""
        most = self.most()
        while len(self.out) < most:
            job = self.again.pop() if self.again else self.next()
            if job is None:
                return
            key = f"anabranch-{id(self):x}-{job.number}-{job.tries}"
            future = self.client.submit(make, job.letter, self.policies, pure=False, key=key)
            self.out[future] = job
            done.add(future)

    def next(self) -> _Job | None:
        taken = self.made.take(self.runs)
        return None if taken is None else _Job(*taken)

    def most(self) -> int:
        """As the cluster grows and shrinks; while it has no worker at all, jobs wait for the first one."""
        threads: int = sum(self.client.nthreads().values())
        return JOBS_PER_THREAD * max(1, threads)

    def take_in(self, future: Any, done: Any) -> None:
        job = self.out.pop(future)
        if future.status != "finished":
            self.lost(job, future)
            return
        rows, took = future.result()
        # The scheduler may forget it.
        future.release()
        self.total = self.made.put(job.number, rows)
        self.count += job.runs
        if self.show is not None:
            self.show(self.count, self.total)
        # As many runs as take the time that a job should; slowly upward, since the next ones may be longer.
        fit = int(SECONDS_PER_JOB / max(took / job.runs, 1e-6))
        self.runs = max(1, min(fit, 2 * self.runs, MOST_RUNS))

    def lost(self, job: _Job, future: Any) -> None:
        """A job that has no rows: an error of its own ends the sweep, a lost worker does not."""
        error = None if future.status in ("cancelled", "lost") else future.exception()
        if isinstance(error, Error):
            raise error
        if error is not None and self.policies and _is_raised_by_a_policy(error):
            raise error
        if error is not None and type(error).__name__ != "KilledWorker":
            raise Error(f"a worker cannot run a job: {type(error).__name__}: {error}", hint=_HINT) from error
        job.tries += 1
        if job.tries >= TRIES:
            raise Error(
                f"{TRIES} times a worker was lost with the same job",
                hint="look at the workers' logs: they may lack memory; rows that were made are kept",
            )
        self.again.append(job)


def _is_raised_by_a_policy(error: BaseException) -> bool:
    """What the simulator itself raises is an :class:`Error`, and what Dask raises is its own; a policy's has a note."""
    return any(note.startswith(NOTE) for note in getattr(error, "__notes__", ()))


_HINT = "workers need the package anabranch in the version that the client has; rows that were made are kept"


class _Job:
    def __init__(self, number: int, letter: str, runs: int) -> None:
        self.number, self.letter, self.runs, self.tries = number, letter, runs, 0
