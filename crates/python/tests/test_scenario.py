"""Scenarios: reading, changing, errors."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import anabranch as ab

from conftest import NETWORK, ROOT


def test_values_are_found_by_path_and_by_attribute_with_defaults(network: ab.Scenario) -> None:
    assert network.name == "cable"
    assert (network.seed, network.stop) == (7, 60.0)
    assert network["link.cable.rate"] == network.link["cable"].rate == network.link[0].rate == "1 Mbit/s"
    assert network["link.0.delay"] == "5 ms"
    assert [node.name for node in network.node] == ["a", "b"]
    assert "link.cable.loss" in network
    assert "link.cabel.loss" not in network
    assert "network" in network.to_dict()
    with pytest.raises(KeyError):
        network["link.nobody.rate"]
    with pytest.raises(AttributeError, match="there is no `rates` here"):
        network.link["cable"].rates  # noqa: B018
    assert "link" in dir(network)


def test_setting_makes_another_scenario(network: ab.Scenario) -> None:
    slower = network.set("link.cable.rate", "56 kbit/s").set("link.cable.loss", 0)
    assert slower["link.cable.rate"] == "56 kbit/s"
    assert network["link.cable.rate"] == "1 Mbit/s"
    assert slower != network
    assert slower.hash != network.hash
    assert network.set("link.*.loss", 0.05) == network
    together = {"link.cable.rate": "56 kbit/s", "link.cable.loss": 0}
    assert network.set(together) == slower
    assert network.set({}) == network
    with pytest.raises(ab.Error, match="set link.cable.loss=2"):
        network.set({**together, "link.cable.loss": 2})
    assert len({network, network.set("seed", 9), slower}) == 2, "the seed is no part of what a scenario is"


def test_numbers_of_numpy_are_numbers(network: ab.Scenario) -> None:
    """Some of its scalars are Python's numbers as well, and none prints as one."""
    expected = network.set("link.cable.loss", 0.02)
    for loss in (np.float64(0.02), np.array(0.02)):
        assert network.set("link.cable.loss", loss) == expected
    assert network.set("link.cable.loss", np.float32(0.25)) == network.set("link.cable.loss", 0.25)
    for size in (np.int64(3), np.uint8(3)):
        assert network.set("tcp.default.initial_window", size) == network.set("tcp.default.initial_window", 3)
    spec = {"scenario": network, "runs": np.int64(2), "grid": {"link.cable.loss": np.linspace(0, 0.1, 3)}}
    assert ab.sweep(spec, progress=False)["link.cable.loss"] == [0.0, 0.0, 0.05, 0.05, 0.1, 0.1]


def test_a_scenario_survives_its_own_text_pickle_and_copy(gateways: ab.Scenario) -> None:
    again = ab.Scenario.from_toml(gateways.to_toml())
    assert again == gateways
    assert pickle.loads(pickle.dumps(gateways)) == gateways
    assert copy.deepcopy(gateways).folder == gateways.folder == ROOT / "scenarios"


def test_points_of_a_scenario_s_own_axes() -> None:
    text = NETWORK + '[sweep]\n"link.cable.loss" = [0.0, 0.1]\n"seed" = [1, 2]\n'
    points = ab.Scenario.from_toml(text).points()
    assert [axes for axes, _ in points] == [
        {"link.cable.loss": loss, "seed": seed} for loss in (0.0, 0.1) for seed in (1, 2)
    ]
    assert [point["link.cable.loss"] for _, point in points] == [0.0, 0.0, 0.1, 0.1]
    assert all(len(point.points()) == 1 for _, point in points)


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.toml")), ids=lambda path: path.stem)
def test_the_ready_networks_are_understood(path: Path) -> None:
    scenario = ab.Scenario.from_file(path)
    assert ab.Scenario.from_toml(scenario.to_toml(), folder=path.parent).hash == scenario.hash


def test_errors_have_place_and_hint(network: ab.Scenario, tmp_path: Path) -> None:
    with pytest.raises(ab.Error) as caught:
        ab.Scenario.from_toml(NETWORK.replace("delay =", "dealy ="))
    assert caught.value.place == "scenario:14:1"
    assert caught.value.hint == "did you mean `delay`?"
    assert str(caught.value).startswith("scenario:14:1: unknown key `dealy`")

    with pytest.raises(ab.Error) as caught:
        network.set("link.cabel.rate", "1 kbit/s")
    assert caught.value.place == 'set link.cabel.rate="1 kbit/s"'
    assert caught.value.hint == "did you mean `cable`?"

    with pytest.raises(ab.Error, match="cannot read it"):
        ab.Scenario.from_file(tmp_path / "nowhere.toml")
    with pytest.raises(ab.Error, match="is no path"):
        network.set("link.cable.rate=1", 2)
    with pytest.raises(TypeError, match="no values of type object"):
        network.set("link.cable.rate", object())
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.message, again.place, again.hint) == (caught.value.message, caught.value.place, caught.value.hint)


def test_texts_arrive_as_they_are(network: ab.Scenario) -> None:
    for text in ['a "quoted"\n\\ text', "7", "true", "snowman ☃ 𝄞", "\x7f", "a=b"]:
        assert network.set("name", text).name == text
