"""Sweeps on the workers of Dask distributed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import _anabranch as native
from ._error import Error, missing
from ._policies import Brought

SECONDS_PER_JOB = 0.5
"""Intended duration of a job: long compared with its transmission, short compared with the loss of
a worker.
"""
JOBS_PER_THREAD = 3
"""Jobs under way for each thread of the cluster: one that runs, and the next ones."""
MOST_RUNS = 1000
"""Largest number of runs in a job."""
NOTE = "in a policy: "
"""First words of the note that the compiled part adds to an exception of a policy."""
TRIES = 10
"""Number of times that a job of a lost worker is submitted, in addition to the retries of Dask's
scheduler.
"""


def make(letter: str, policies: tuple[Brought, ...] = ()) -> tuple[bytes, float]:
    """Runs a job on a worker. Returns its rows and its duration in seconds."""
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
    """Makes all unfinished runs of a shard on the workers of a client.

    The rows do not depend on the worker, the number of tries or the order: a job is self-contained,
    rows are stored by the identity of their run, and a row that arrives twice counts once.
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
        # The remaining jobs are useless: the sweep was interrupted, or failed.
        if flow.out:
            client.cancel([*flow.out], force=True)
        made.sync()


class _Flow:
    """Jobs under way."""

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
        """Submits jobs until enough are under way."""
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
        """Largest number of jobs under way, which follows the size of the cluster; without a
        worker, jobs wait for the first one.
        """
        threads: int = sum(self.client.nthreads().values())
        return JOBS_PER_THREAD * max(1, threads)

    def take_in(self, future: Any, done: Any) -> None:
        job = self.out.pop(future)
        if future.status != "finished":
            self.lost(job, future)
            return
        rows, took = future.result()
        # Lets the scheduler free the result, so that its memory does not grow with the sweep.
        future.release()
        self.total = self.made.put(job.number, rows)
        self.count += job.runs
        if self.show is not None:
            self.show(self.count, self.total)
        # As many runs as fit into the intended duration. At most twice the last number, because the
        # next runs may take longer.
        fit = int(SECONDS_PER_JOB / max(took / job.runs, 1e-6))
        self.runs = max(1, min(fit, 2 * self.runs, MOST_RUNS))

    def lost(self, job: _Job, future: Any) -> None:
        """Handles a job without rows: an error of the job ends the sweep, a lost worker does
        not."""
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
    """Whether a policy raised this exception: it then has a note. The simulator raises
    :class:`Error`, and Dask its own exceptions.
    """
    return any(note.startswith(NOTE) for note in getattr(error, "__notes__", ()))


_HINT = "workers need the package anabranch in the version that the client has; rows that were made are kept"


class _Job:
    def __init__(self, number: int, letter: str, runs: int) -> None:
        self.number, self.letter, self.runs, self.tries = number, letter, runs, 0
