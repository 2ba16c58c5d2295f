"""What happens in a run: events, captures and replays, which are those of the program."""

from __future__ import annotations

import html
import pickle
import subprocess
from pathlib import Path

import pytest

import anabranch as ab


def test_events_agree_with_the_metrics(network: ab.Scenario) -> None:
    result = ab.run(network, runs=3)
    for row, run in enumerate(result):
        events = result.events(row)
        assert events.columns[:4] == ["time", "event", "node", "link"]
        assert (events.unit("time"), events.unit("bytes")) == ("s", "B")
        assert events["time"] == sorted(events["time"])
        counts = {kind: [e for e in events if e["event"] == kind and e["link"] == "a>b"] for kind in ("sent", "received", "lost")}
        assert len(counts["sent"]) == run["link.a>b.packets"]
        assert len(counts["lost"]) == run["link.a>b.dropped_loss"]
        assert len(counts["received"]) == len(counts["sent"]) - len(counts["lost"])
        assert {e["detail"] for e in counts["lost"]} <= {"channel"}
        assert {e["node"] for e in counts["received"]} == {"b"}
        # The whole file has gone over the link: 10 kB in octets of TCP that differ.
        octets = {octet for e in counts["received"] for octet in range(e["seq"], e["seq"] + e["len"])}
        assert len(octets) == 10_000
    assert result.events(0).to_ipc() != result.events(1).to_ipc(), "each row is a run of its own"
    assert result.events(-1).to_ipc() == result.events(2).to_ipc()


def test_time_series_are_those_of_the_program(program: Path, network: ab.Scenario, tmp_path: Path) -> None:
    (tmp_path / "net.toml").write_text(network.to_toml())
    result = ab.run(network, runs=2)
    for row in (0, 1):
        command = [str(program), "run", "net.toml", "--series", "out", "--series-every", "20 ms", "--run", str(row)]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        series = result.series(row, every="20 ms")
        assert set(series) == {"connections", "queues"}, "there is no radio and no RDCA"
        for name, table in series.items():
            lines = (tmp_path / "out" / f"{name}.csv").read_text().splitlines()
            assert lines[0].split(",") == table.columns
            assert len(lines) == len(table) + 1 > 3
            for line, found in zip(lines[1:], table, strict=True):
                texts = [("" if value is None else value) for value in found.values()]
                both = zip(line.split(","), texts, strict=True)
                assert all(text == value if isinstance(value, str) else float(text) == value for text, value in both)
    assert series["connections"].unit("cwnd_bytes") == "B"
    assert len(result.series(every="1 s")["connections"]) < len(series["connections"])
    for wrong in ("0 s", "fast", ""):
        with pytest.raises(ab.Error, match="every"):
            result.series(every=wrong)


def test_files_are_those_of_the_program(program: Path, network: ab.Scenario, tmp_path: Path) -> None:
    (tmp_path / "net.toml").write_text(network.to_toml())
    command = [str(program), "run", "net.toml", "--events", "e", "--pcap", "p", "--trace", "t"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    result = ab.run(tmp_path / "net.toml")
    result.write_events(tmp_path / "events")
    result.capture(tmp_path / "capture")
    result.write_trace(tmp_path / "trace")
    assert (tmp_path / "capture").read_bytes() == (tmp_path / "p").read_bytes()
    assert (tmp_path / "trace").read_bytes() == (tmp_path / "t").read_bytes()
    assert (tmp_path / "events").read_bytes() == (tmp_path / "e").read_bytes()
    subprocess.run([str(program), "view", "e", "-o", "v.html"], cwd=tmp_path, check=True, capture_output=True)
    replay = result.replay()
    replay.write(tmp_path / "replay.html")
    assert (tmp_path / "replay.html").read_bytes() == (tmp_path / "v.html").read_bytes()
    inline = replay._repr_html_()
    assert inline.startswith('<iframe srcdoc="')
    page = inline.removeprefix('<iframe srcdoc="').partition('"')[0]
    assert html.unescape(page) == replay.html


def test_a_row_of_a_sweep_is_its_own_run(network: ab.Scenario) -> None:
    grid = {"link.cable.loss": [0.0, 0.3]}
    swept = ab.sweep({"scenario": network, "runs": 2, "seeds": [5, 7], "grid": grid}, progress=False)
    for row, values in enumerate(swept):
        alone = ab.run(network.set("link.cable.loss", values["link.cable.loss"]), runs=2, seed=values["seed"])
        assert swept.events(row).to_ipc() == alone.events(values["run"]).to_ipc()


def test_parts_of_a_replay_and_what_cannot_be_recorded(network: ab.Scenario, tmp_path: Path) -> None:
    result = ab.run(network)
    assert len(result.replay(end=0.02).html) < len(result.replay().html)
    with pytest.raises(ab.Error, match="more than 10 rows"):
        result.replay(limit=10)
    with pytest.raises(ab.Error, match="ends before it begins"):
        result.replay(start=2.0, end=1.0)
    with pytest.raises(ab.Error, match="there is no row 1") as caught:
        result.events(1)
    assert caught.value.hint == "the result has 1 rows, from 0"
    with pytest.raises(ab.Error, match="cannot write it"):
        result.capture(tmp_path / "nowhere" / "x.pcapng")
    with pytest.raises(ab.Error, match="cannot make its runs again"):
        pickle.loads(pickle.dumps(result)).replay()
    with pytest.raises(ab.Error, match="an experiment leave no record"):
        ab.sweep({"experiment": "dtc", "set": {"segments": 20}}, progress=False).events()


def test_radio_frames_are_events(radio: ab.Scenario) -> None:
    events = ab.run(radio).events()
    frames = [event for event in events if event["event"] == "frame"]
    assert frames
    assert {event["detail"].split(",")[0] for event in frames} <= {"data", "ack", "rts", "cts"}
    # 127 octets are the longest frame of IEEE 802.15.4.
    assert all(0 < event["bytes"] <= 127 and event["value"] > 0 for event in frames)


@pytest.fixture
def radio() -> ab.Scenario:
    from conftest import ROOT

    scenario = ab.Scenario.from_file(ROOT / "scenarios/three-hops-radio.toml")
    return scenario.set(f"transfer.{scenario.transfer[0].name}.bytes", "2 kB")
