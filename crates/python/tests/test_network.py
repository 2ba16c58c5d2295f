"""Scenarios from dictionaries, and networks built call by call."""

from __future__ import annotations

import pickle
import tomllib
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab

from conftest import NETWORK, ROOT


def cable() -> ab.Network:
    net = ab.Network("cable", seed=7, stop="60 s").node("a").node("b")
    net.link("a", "b", name="cable", rate="1 Mbit/s", delay="5 ms", loss=0.05)
    return net.transfer("a", "b", name="file", kind="tcp", bytes="10 kB")


def test_a_network_is_the_dictionary_of_its_file(network: ab.Scenario) -> None:
    net = cable()
    assert net == tomllib.loads(NETWORK)
    assert net.scenario() == network
    assert ab.run(net, runs=3).to_ipc() == ab.run(network, runs=3).to_ipc()
    grid = {"link.cable.loss": [0.0, 0.1]}
    assert len(ab.sweep({"scenario": net, "grid": grid}, progress=False)) == 2
    assert pickle.loads(pickle.dumps(net)) == net


def test_tables_of_all_kinds() -> None:
    net = cable().table("tcp.default", mss=1296).table("network", ip=4).event("1 s", "link-down", from_="a", to="b")
    net.add("event", at="2 s", action="link-up", from_="a", to="b")
    scenario = net.scenario()
    assert (scenario["tcp.default.mss"], scenario["network.ip"]) == (1296, 4)
    assert [event.action for event in scenario.event] == ["link-down", "link-up"]
    more = ab.Network().node("a").node("b").add("link", from_="a", to="b", rate="1 Mbit/s", delay="1 ms")
    assert more["link"] == [{"from": "a", "to": "b", "rate": "1 Mbit/s", "delay": "1 ms"}]
    with pytest.raises(ab.Error, match="is not a single table"):
        cable().table("link.cable", rate="1 kbit/s")
    with pytest.raises(ab.Error, match="is not a list of tables"):
        cable().table("tcp.default", mss=100).add("tcp", mss=100)


SCENARIOS = [path for path in sorted((ROOT / "scenarios").rglob("*.toml")) if path.parent.name != "sweeps"]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_dictionary_of_any_scenario_file_is_that_scenario(path: Path) -> None:
    values = tomllib.loads(path.read_text())
    # The file may have axes of its own, and so may the dictionary.
    ours, file = ab.Scenario.from_dict(values, path.parent), ab.Scenario.from_file(path)
    assert ours.hash == file.hash
    assert ab.Scenario.from_dict(file.to_dict(), path.parent).hash == file.hash
    assert [axes for axes, _ in ours.points()] == [axes for axes, _ in file.points()]


def changed(change: Any) -> dict[str, Any]:
    values = tomllib.loads(NETWORK)
    change(values)
    return values


@pytest.mark.parametrize(
    ("change", "message", "place"),
    [
        (lambda v: v["link"][0].update(dealy="1 s"), "unknown key `dealy`", "link.cable.dealy"),
        (lambda v: v["link"][0].update(loss=7), "is not a probability", "link.cable.loss"),
        (lambda v: v["link"][0].update(back={"rate": "fast"}), "fast", "link.cable.back.rate"),
        (lambda v: v["link"][0].pop("name") and v["link"][0].update(to="c"), "`c`", "link.0.to"),
        (lambda v: v["node"].append({"name": "a"}), "two nodes of the name `a`", "node.a.name"),
        (lambda v: v.update(stpo="1 s"), "unknown key `stpo`", "stpo"),
        (lambda v: v.update(tcp={"default": {"mss": 0}}), "an MSS is in", "tcp.default.mss"),
        (lambda v: v.update(sweep={"link.cable.loss": [0, 7]}), "is not a probability", 'sweep["link.cable.loss"]'),
    ],
)  # fmt: skip
def test_errors_name_the_path_of_the_key(change: Any, message: str, place: str) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.run(changed(change))
    assert message in caught.value.message
    assert caught.value.place == place
    if "sweep" not in place:
        again = pickle.loads(pickle.dumps(ab.Scenario.from_dict(tomllib.loads(NETWORK))))
        with pytest.raises(ab.Error, match="set link.cable.loss=7"):
            again.set("link.cable.loss", 7)


def test_values_that_no_scenario_has(network: ab.Scenario) -> None:
    with pytest.raises(TypeError, match="link.cable.loss: a scenario has no values of type object"):
        ab.Scenario.from_dict(changed(lambda v: v["link"][0].update(loss=object())))
    # What is `None` is not said: the default counts.
    lossless = ab.Scenario.from_dict(changed(lambda v: v["link"][0].update(loss=None)))
    assert lossless == network.set("link.cable.loss", 0)
    with pytest.raises(ab.Error) as caught:
        ab.Scenario.from_dict({})
    assert caught.value.place == "scenario"
    # The scenario of a sweep is what its error names, not the spec.
    with pytest.raises(ab.Error) as caught:
        ab.sweep({"scenario": changed(lambda v: v["link"][0].update(loss=7)), "grid": {"link.cable.delay": ["1 s"]}})
    assert caught.value.place == "link.cable.loss"
