"""Policies written in Python."""

from __future__ import annotations

import functools
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch import policy
from anabranch.policy import Demand, File, Lost, Sample, Session, Start, Subflow, View

from conftest import ROOT, SLOW
from newreno import NewReno

SCENARIOS = ROOT / "scenarios"


def metrics(result: ab.Result) -> list[dict[str, Any]]:
    names = set(result.metrics)
    return [{name: value for name, value in row.items() if name in names} for row in result]


def in_python(scenario: ab.Scenario, path: str = "tcp.default.congestion", make: Any = NewReno) -> ab.Scenario:
    return scenario.with_congestion("mine", make).set(path, "mine")


SAME: dict[str, tuple[str, dict[str, object]]] = {
    "queue": ("dumbbell.toml", {"stop": "30 s"}),
    "losses": ("dumbbell.toml", {"stop": "30 s", "link.bottleneck.loss": 0.01, "link.bottleneck.queue": "60 packets"}),
    "bursts": ("dumbbell.toml", {"stop": "30 s", "link.bottleneck.loss": 0.15}),
    "marks": ("dumbbell.toml", {"stop": "30 s", "tcp.default.ecn": "request", "link.bottleneck.discipline": "codel"}),
    "reno": ("dumbbell.toml", {"stop": "30 s", "link.bottleneck.loss": 0.02, "tcp.default.sack": "off"}),
    "radio": ("three-hops-radio.toml", {"tcp.default.window_limit": "none"}),
    "gateways": ("three-gateways.toml", {"link.radio*.loss": 0.02}),
}


@pytest.mark.parametrize("case", SAME)
def test_newreno_in_python_is_newreno(case: str) -> None:
    file, values = SAME[case]
    scenario = ab.Scenario.from_file(SCENARIOS / file).set(values)
    rust = metrics(ab.run(scenario.set("tcp.default.congestion", "newreno"), runs=3, seed=5))
    python = metrics(ab.run(in_python(scenario), runs=3, seed=5))
    assert python == rust
    other = metrics(ab.run(scenario.set("tcp.default.congestion", "cubic"), runs=3, seed=5))
    assert case in ("radio", "gateways") or other != rust, "the controller decides"


def test_a_controller_of_subflows() -> None:
    diamond = ab.Scenario.from_file(SCENARIOS / "diamond-mptcp.toml").set("transfer.log.bytes", "50 kB")
    path = "transfer.log.mptcp.congestion"
    rust, python = (ab.run(one, runs=2) for one in (diamond.set(path, "newreno"), in_python(diamond, path)))
    assert metrics(python) == metrics(rust)


class Fastest(ab.Scheduler):
    def pick(self, demand: Demand, paths: list[Subflow]) -> policy.Pick:
        room = [path for path in paths if demand.unsent > 0 and path.takes(demand.unsent)]
        return min(room, key=lambda path: path.rtt).index if room else None


class RoundRobin(ab.Scheduler):
    def __init__(self) -> None:
        self.next = 0

    def pick(self, demand: Demand, paths: list[Subflow]) -> policy.Pick:
        room = [path.index for path in paths if demand.unsent > 0 and path.takes(demand.unsent)]
        if not room:
            return None
        index = next((index for index in room if index >= self.next), room[0])
        self.next = index + 1
        return policy.Send(index)


@pytest.mark.parametrize(("name", "make"), [("fastest-rtt", Fastest), ("round-robin", RoundRobin)])
def test_schedulers_in_python_are_those_of_the_core(name: str, make: Callable[[], ab.Scheduler]) -> None:
    diamond = ab.Scenario.from_file(SCENARIOS / "diamond-mptcp.toml").set("transfer.log.bytes", "50 kB")
    rust = ab.run(diamond.set("transfer.log.mptcp.scheduler", name), runs=2)
    python = ab.run(diamond.with_scheduler("mine", make).set("transfer.log.mptcp.scheduler", "mine"), runs=2)
    assert metrics(python) == metrics(rust)


class Window(ab.Striping):
    def choose(self, sessions: list[Session], file: File) -> int | None:
        open = [i for i, session in enumerate(sessions) if session.usable and session.chunk > 0]
        return max(open, key=lambda i: (sessions[i].room, -i)) if open else None


def test_a_striping_policy_in_python_is_that_of_the_core(gateways: ab.Scenario) -> None:
    rust = ab.run(gateways.set("transfer.update.set.striping", "window"), runs=3)
    python = ab.run(gateways.with_striping("mine", Window).set("transfer.update.set.striping", "mine"), runs=3)
    assert metrics(python) == metrics(rust)


def test_files_and_networks_name_policies(network: ab.Scenario, tmp_path: Path) -> None:
    text = network.set("tcp.default.congestion", "newreno").to_toml().replace('congestion = "newreno"', 'congestion = "mine"')
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ab.Error, match="no congestion control `mine`"):
        ab.Scenario.from_file(tmp_path / "mine.toml")
    expected = metrics(ab.run(network.set("tcp.default.congestion", "newreno"), runs=2))
    mine = {"mine": NewReno}
    read = ab.Scenario.from_file(tmp_path / "mine.toml", congestion=mine)
    net = ab.Network("cable", seed=7, stop="60 s").node("a").node("b").table("tcp.default", congestion="mine")
    net.link("a", "b", name="cable", rate="1 Mbit/s", delay="5 ms", loss=0.05)
    net.transfer("a", "b", name="file", kind="tcp", bytes="10 kB")
    same = [read, ab.Scenario.from_toml(text, congestion=mine), ab.Scenario.from_dict(read.to_dict(), congestion=mine)]
    for scenario in [*same, net.scenario(congestion=mine)]:
        assert metrics(ab.run(scenario, runs=2)) == expected
        assert scenario == read


def test_a_controller_is_made_for_each_connection_and_told_what_happens(network: ab.Scenario) -> None:
    made: list[Spy] = []

    class Spy(NewReno):
        wants_samples = True

        def __init__(self, start: Start) -> None:
            super().__init__(start)
            assert 0 < start.cwnd and start.mss > 0 and start.ssthresh == policy.UNBOUNDED
            self.seed, self.times, self.samples, self.lost = start.seed, [0.0], 0, 0
            made.append(self)

        def on_ack(self, now: float, view: View, acked: int) -> None:
            assert now >= self.times[-1] and acked > 0 and view.min_rtt is not None and view.min_rtt > 0.01
            assert "View" in repr(view)
            self.times.append(now)
            super().on_ack(now, view, acked)

        def on_sample(self, now: float, view: View, sample: Sample) -> None:
            assert sample.total_delivered >= sample.delivered > 0 and sample.interval > 0
            self.samples += 1

        def on_lost(self, now: float, view: View, lost: Lost) -> None:
            assert 0 < lost.size <= view.mss
            self.lost += 1

    twice = network.set({"transfer.file.count": 2, "transfer.file.name": "file {i}", "transfer.file {i}.bytes": "100 kB"})
    scenario = in_python(twice, make=Spy)
    (row,) = ab.run(scenario)
    used = [one for one in made if len(one.times) > 5]
    assert len(used) == 2
    assert len({one.seed for one in used}) == 2
    assert all(one.samples > 5 and one.lost > 0 for one in used)
    latency = max(value for name, value in row.items() if name.endswith("latency_s"))
    assert max(one.times[-1] for one in used) == pytest.approx(latency, abs=0.1)


def test_arguments_make_other_controllers(network: ab.Scenario) -> None:
    class Held(ab.Controller):
        def __init__(self, start: Start, segments: float) -> None:
            self.cwnd = self.ssthresh = segments * start.mss

    lossless = network.set({"link.cable.loss": 0.0, "link.cable.delay": "100 ms"})
    results = [ab.run(in_python(lossless, make=functools.partial(Held, segments=n)))["latency_s"][0] for n in (1, 2.5, 4)]
    # 10 kB are 7 segments or so: as many round trips as windows.
    assert results[0] > 1.5 * results[1] > 2 * results[2]


def test_paced_controllers(network: ab.Scenario) -> None:
    class Paced(ab.Controller):
        def __init__(self, start: Start) -> None:
            self.cwnd, self.ssthresh, self.pacing_rate = 1e6, 1e6, 1000.0

    paced = network.set({"link.cable.loss": 0.0, "tcp.default.pacing": True})
    slow, fast = (ab.run(scenario)["latency_s"][0] for scenario in (in_python(paced, make=Paced), paced))
    # 10 kB at 1 kB/s, but for the first segments.
    assert fast < 1 < 5 < slow < 11


@pytest.mark.parametrize("number", ["int", "float", "numpy.int64", "numpy.float32", "fractions.Fraction"])
def test_windows_are_numbers_of_any_kind(network: ab.Scenario, number: str) -> None:
    """Half a byte is no byte."""
    module, _, name = number.rpartition(".")
    kind = getattr(pytest.importorskip(module or "builtins"), name)

    class Other(NewReno):
        def on_rtt(self, now: float, view: View, rtt: float) -> None:
            self.cwnd = kind(3 * view.mss) if "int" in number else kind(3 * view.mss + 0.5)

    class Plain(NewReno):
        def on_rtt(self, now: float, view: View, rtt: float) -> None:
            self.cwnd = 3 * view.mss

    class Growing(Other):
        def on_ack(self, now: float, view: View, acked: int) -> None:
            pass

    class PlainGrowing(Plain):
        def on_ack(self, now: float, view: View, acked: int) -> None:
            pass

    assert metrics(ab.run(in_python(network, make=Growing))) == metrics(ab.run(in_python(network, make=PlainGrowing)))


def test_random_choices_by_the_seed_of_a_connection(network: ab.Scenario) -> None:
    drawn: list[float] = []

    class Drawn(NewReno):
        def __init__(self, start: Start) -> None:
            super().__init__(start)
            self.random = random.Random(start.seed)

        def on_rtt(self, now: float, view: View, rtt: float) -> None:
            drawn.append(self.random.random())
            self.cwnd = int(view.mss * (1 + 4 * drawn[-1]))

    first = ab.run(in_python(network, make=Drawn), runs=4, jobs=1).to_ipc()
    once = [*drawn]
    drawn.clear()
    assert ab.run(in_python(network, make=Drawn), runs=4, jobs=1).to_ipc() == first
    assert drawn == once
    # Each run draws its own.
    assert len(set(once)) == len(once) > 10


class Odd(Exception):
    pass


class Raises(NewReno):
    def on_loss(self, now: float, view: View) -> None:
        self.somewhere()

    def somewhere(self) -> None:
        raise Odd("here")


class RaisesAtOnce(ab.Controller):
    def __init__(self, start: Start) -> None:
        raise Odd("at once")


@pytest.mark.parametrize("runs", [1, 40])
def test_what_a_method_raises_ends_the_runs(network: ab.Scenario, runs: int) -> None:
    lossy = network.set({"link.cable.loss": 0.2, "transfer.file.bytes": "1 MB"})
    with pytest.raises(Odd, match="here") as caught:
        ab.run(in_python(lossy, make=Raises), runs=runs)
    text = "".join(traceback.format_exception(caught.value))
    assert "in somewhere" in text and "in on_loss" in text and "test_policies.py" in text
    assert "in a policy: Raises.on_loss at " in text
    with pytest.raises(Odd, match="at once"):
        ab.sweep({"scenario": in_python(network, make=RaisesAtOnce), "runs": runs}, progress=False)
    # All is well afterwards.
    assert len(ab.run(in_python(network), runs=2)) == 2


def test_a_run_without_an_end_ends_when_a_method_raises() -> None:
    class Late(NewReno):
        def on_rtt(self, now: float, view: View, rtt: float) -> None:
            if now > 0.1:
                raise Odd("late")

    slow = in_python(ab.Scenario.from_toml(SLOW), make=Late)
    for runs in (1, 3):
        with pytest.raises(Odd, match="late"):
            ab.run(slow, runs=runs)


def test_records_of_a_run_with_a_policy(network: ab.Scenario) -> None:
    rust, python = (ab.run(one, seed=2) for one in (network.set("tcp.default.congestion", "newreno"), in_python(network)))
    assert python.series()["connections"]["cwnd_bytes"] == rust.series()["connections"]["cwnd_bytes"]
    assert len(python.events()) == len(rust.events())
    flag: list[bool] = []

    class Later(NewReno):
        def on_ack(self, now: float, view: View, acked: int) -> None:
            if flag:
                raise Odd("again")
            super().on_ack(now, view, acked)

    result = ab.run(in_python(network, make=Later))
    flag.append(True)
    with pytest.raises(Odd, match="again"):
        result.events()


NONSENSE: list[tuple[object, str]] = [
    (-5, "-5"),
    (-0.5, "-0.5"),
    (math.nan, "nan"),
    (math.inf, "inf"),
    ("big", "'big'"),
    (None, "None"),
    (2**80, str(2**80)),
    (2**32, "4294967296"),
    ([1], r"\[1\]"),
    (1j, "1j"),
]


@pytest.mark.parametrize(("value", "said"), NONSENSE)
@pytest.mark.parametrize("name", ["cwnd", "ssthresh"])
def test_a_window_of_nonsense_is_an_error(network: ab.Scenario, name: str, value: object, said: str) -> None:
    class Mad(NewReno):
        def on_rtt(self, now: float, view: View, rtt: float) -> None:
            setattr(self, name, value)

    with pytest.raises(ab.Error, match=rf"Mad\.on_rtt left `{name}` = {said}: expected a number of bytes from 0 to"):
        ab.run(in_python(network, make=Mad))


def test_other_nonsense(network: ab.Scenario) -> None:
    class NoWindow(ab.Controller):
        def __init__(self, start: Start) -> None:
            pass

    with pytest.raises(ab.Error, match=r"NoWindow\.__init__ left no `cwnd`"):
        ab.run(in_python(network, make=NoWindow))

    class Fast(NewReno):
        def on_rtt(self, now: float, view: View, rtt: float) -> None:
            self.pacing_rate = -1.0

    with pytest.raises(ab.Error, match=r"Fast\.on_rtt left `pacing_rate` = -1\.0"):
        ab.run(in_python(network, make=Fast))

    class Ugly:
        def __repr__(self) -> str:
            raise Odd("no words")

    class Left(NewReno):
        def on_rtt(self, now: float, view: View, rtt: float) -> None:
            self.cwnd = Ugly()  # type: ignore[assignment]

    with pytest.raises(ab.Error, match=r"Left\.on_rtt left `cwnd` = a .*Ugly"):
        ab.run(in_python(network, make=Left))
    with pytest.raises(ab.Error, match="makes a `int`, which is no anabranch.Controller"):
        ab.run(in_python(network, make=lambda start: 7))


def test_picks_of_nonsense() -> None:
    diamond = ab.Scenario.from_file(SCENARIOS / "diamond-mptcp.toml").set("transfer.log.bytes", "5 kB")
    picks: list[tuple[Any, str]] = [
        (99, "99: expected None, the index of a subflow"),
        (-1, "-1"),
        ("0", "'0'"),
        (policy.Send(99), r"Send\(index=99, skip=0\)"),
        (policy.Send(0, -1), r"Send\(index=0, skip=-1\)"),
        (policy.Copy(99), r"Copy\(index=99\)"),
        (0.5, r"0\.5"),
    ]
    for pick, said in picks:

        wild = type("Wild", (ab.Scheduler,), {"pick": lambda self, demand, paths, always=pick: always})

        with pytest.raises(ab.Error, match=rf"Wild\.pick returned {said}"):
            ab.run(diamond.with_scheduler("wild", wild).set("transfer.log.mptcp.scheduler", "wild"))
    with pytest.raises(NotImplementedError, match="no method `pick`"):
        ab.run(diamond.with_scheduler("none", ab.Scheduler).set("transfer.log.mptcp.scheduler", "none"))


def test_choices_of_nonsense(gateways: ab.Scenario) -> None:
    class Wild(ab.Striping):
        def choose(self, sessions: list[Session], file: File) -> int | None:
            return 10**30

    with pytest.raises(ab.Error, match=r"Wild\.choose returned 10{30}: expected None or the index of a session"):
        ab.run(gateways.with_striping("wild", Wild).set("transfer.update.set.striping", "wild"))


def test_names_and_classes_are_checked(network: ab.Scenario) -> None:
    with pytest.raises(ab.Error, match="`newreno` is a congestion policy of Anabranch itself"):
        network.with_congestion("newreno", NewReno)
    for name in ("", "a b", "x" * 33, '"', "ü"):
        with pytest.raises(ab.Error, match="is no name of a policy"):
            network.with_congestion(name, NewReno)
    for wrong in (int, Fastest, 7, None):
        with pytest.raises(ab.Error, match=r"makes no anabranch\.Controller"):
            network.with_congestion("mine", wrong)  # type: ignore[arg-type]

    class Misspelt(NewReno):
        def on_akc(self, now: float, view: View, acked: int) -> None:
            pass

    with pytest.raises(ab.Error, match=r"Misspelt\.on_akc` would never be called") as caught:
        network.with_congestion("mine", Misspelt)
    assert caught.value.hint == "did you mean `on_ack`?"
    again = network.with_congestion("mine", RaisesAtOnce).with_congestion("mine", NewReno)
    assert again.set("tcp.default.congestion", "mine") == in_python(network)
    with pytest.raises(ab.Error, match="did you mean `mine`"):
        network.with_congestion("mine", NewReno).set("tcp.default.congestion", "nine")


def test_runs_do_not_depend_on_threads(network: ab.Scenario) -> None:
    """Neither those of the simulator nor those of Python."""
    mine = in_python(network.set("transfer.file.bytes", "50 kB"))
    expected = ab.run(mine, runs=12, jobs=1).to_ipc()
    assert ab.run(mine, runs=12).to_ipc() == expected
    results: list[object] = []

    def work(make: Any) -> None:
        try:
            results.append(ab.run(in_python(network.set("transfer.file.bytes", "50 kB"), make=make), runs=12).to_ipc())
        except Exception as error:
            results.append(type(error))

    threads = [threading.Thread(target=work, args=(make,)) for make in (NewReno, RaisesAtOnce, NewReno, RaisesAtOnce)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    # What one call has raised is not raised by another.
    assert sorted(map(str, results)) == sorted(map(str, [expected, expected, Odd, Odd]))


def test_a_policy_may_make_runs_itself(network: ab.Scenario) -> None:
    class Deep(NewReno):
        def __init__(self, start: Start) -> None:
            super().__init__(start)
            assert len(ab.run(network, runs=3)) == 3
            with pytest.raises(Odd):
                ab.run(in_python(network, make=RaisesAtOnce))

    assert metrics(ab.run(in_python(network, make=Deep))) == metrics(ab.run(in_python(network)))


def test_sweeps_over_policies(network: ab.Scenario, tmp_path: Path) -> None:
    scenario = network.with_congestion("mine", NewReno)
    spec = {"scenario": scenario, "runs": 4, "grid": {"tcp.default.congestion": ["newreno", "mine", "cubic"]}}
    result = ab.sweep(spec, progress=False)
    latency = result["latency_s"]
    assert latency[:4] == latency[4:8]
    assert len(set(result["scenario_hash"])) == 3
    with pytest.raises(ab.Error, match="policies written in Python are not kept") as caught:
        ab.sweep(spec, tmp_path / "out", progress=False)
    assert "write_parquet" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_source_has_one_digest_in_all_processes() -> None:
    program = (
        "from anabranch import Controller; from anabranch._policies import digest\n"
        "class Mine(Controller):\n    def on_rtt(self, now, view, rtt):\n        return rtt in {'a', 'b', 'c'}, object\n"
        "print(digest(Mine))"
    )
    made = [
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert made[0] and len(set(made)) == 1


def test_classes_of_one_name_are_not_the_same(network: ab.Scenario) -> None:
    def make(gain: float, more: bool) -> Callable[[Start], ab.Controller]:
        class Mine(NewReno):
            def on_rtt(self, now: float, view: View, rtt: float) -> None:
                self.cwnd += int(gain)

        class Other(Mine):
            pass

        return Other if more else Mine

    made = [make(0, False), make(1, False), make(0, True), functools.partial(make(0, False)), NewReno]
    scenarios = [in_python(network, make=one) for one in made]
    assert len({scenario.hash for scenario in scenarios}) == len(made)
    assert in_python(network, make=make(0, False)).hash == scenarios[0].hash

    def attribute(gain: float) -> type[ab.Controller]:
        return type("Mine", (NewReno,), {"gain": gain})

    def static(gain: float) -> type[ab.Controller]:
        class Mine(NewReno):
            @staticmethod
            def gain() -> float:
                return gain

            @property
            def half(self) -> float:
                return gain / 2

        return Mine

    def within(gain: float) -> type[ab.Controller]:
        class Inner:
            half = gain / 2

        class Mine(NewReno):
            def inner(self) -> object:
                return Inner()

        return Mine

    for one_of in (attribute, static, within):
        hashes = [in_python(network, make=one_of(gain)).hash for gain in (0.5, 0.7, 0.5)]
        assert hashes[0] == hashes[2] != hashes[1], one_of
    # What is not used alters nothing.
    assert network.with_congestion("mine", NewReno).hash == network.hash
    assert ab.run(scenarios[0])["scenario_hash"] == [scenarios[0].hash]


def test_scenarios_with_policies_are_pickled_if_their_classes_can_be(network: ab.Scenario) -> None:
    mine = in_python(network)
    again = pickle.loads(pickle.dumps(mine))
    assert again == mine
    assert ab.run(again).to_ipc() == ab.run(mine).to_ipc()

    class Local(NewReno):
        pass

    with pytest.raises((pickle.PicklingError, AttributeError), match="Local"):
        pickle.dumps(in_python(network, make=Local))


INTERRUPTED = """
import signal
import sys
import anabranch as ab
signal.signal(signal.SIGINT, signal.default_int_handler)
class Mine(ab.Controller):
    told = False
    def on_ack(self, now, view, acked):
        if not Mine.told:
            Mine.told = True
            print("begun", flush=True)
        {inside}
slow = ab.Scenario.from_toml(sys.argv[1]).with_congestion("mine", Mine).set("tcp.default.congestion", "mine")
try:
    ab.run(slow, runs={runs})
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


RECORDED = """
import signal
import sys
import anabranch as ab
signal.signal(signal.SIGINT, signal.default_int_handler)
class Mine(ab.Controller):
    again = False
    def on_ack(self, now, view, acked):
        if Mine.again:
            print("begun", flush=True)
            while True: pass
slow = ab.Scenario.from_toml(sys.argv[1]).with_congestion("mine", Mine).set("tcp.default.congestion", "mine")
result = ab.run(slow.set("stop", "1 s"))
Mine.again = True
try:
    result.events()
except KeyboardInterrupt:
    print("stopped", flush=True)
"""

ENDLESS = {f"{inside} {runs}": INTERRUPTED.format(runs=runs, inside=inside) for inside in ("pass", "while True: pass") for runs in (1, 4)}


@pytest.mark.parametrize("code", [*ENDLESS.values(), RECORDED], ids=[*ENDLESS, "record"])
def test_ctrl_c_stops_a_policy(code: str) -> None:
    command = [sys.executable, "-c", code, SLOW]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stderr is not None
        try:
            assert child.stdout.readline() == "begun\n"
            child.send_signal(signal.SIGINT)
            assert child.wait(60) == 0, child.stderr.read()
            assert child.stdout.read() == "stopped\n"
        finally:
            child.kill()
