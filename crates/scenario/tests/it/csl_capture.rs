//! Captures of sleeping nodes, read back by tshark.

use std::collections::BTreeMap;

use anabranch_scenario::{Plan, Source};
use anabranch_sim::capture::Capture;
use anabranch_sim::packet::IpVersion;
use anabranch_sim::radio::Station;
use anabranch_testkit::tshark::Tshark;

const DUTY_CYCLE: &str = include_str!("../../../../scenarios/duty-cycle.toml");

#[test]
fn wake_up_frames_and_enhanced_acknowledgements_are_in_the_capture() {
    for (name, phy, unit) in [("oqpsk", "oqpsk-250k", 160e-6), ("fsk", "fsk-100k", 100e-6)] {
        let source =
            Source::new("duty-cycle.toml", DUTY_CYCLE).set("stop=120 s").set(format!("radio.phy={phy}"));
        let source = source.set("period=120 ms").set("traffic.commands.payload=200 B");
        let scenario = source.scenario().unwrap_or_else(|error| panic!("{error}"));
        let Plan { builder, .. } = scenario.plan(1, 0, &BTreeMap::new()).unwrap();
        let mut sim = builder.build();
        sim.observe(Capture::new(Vec::new(), IpVersion::V6));
        sim.run_until(scenario.stop);
        let octets = sim.take_observer::<Capture<Vec<u8>>>().unwrap().finish().unwrap();
        let radio = sim.world().network.radio().unwrap();
        let all = |of: fn(&anabranch_sim::radio::StationMetrics) -> u64| -> u64 {
            (0..radio.station_count() as u32).map(|station| of(&radio.metrics(Station(station)))).sum()
        };
        let Some(tshark) = Tshark::open(&format!("csl-{name}"), &octets) else { return };
        let multipurpose = "wpan.frame_type == 5";
        let enhanced = "wpan.frame_type == 2 && wpan.version == 2";
        let [wakeups, enh_acks, acks, data, pending, bad] = tshark.counts([
            multipurpose,
            enhanced,
            "wpan.frame_type == 2",
            "wpan.frame_type == 1",
            "wpan.pending == 1",
            "_ws.malformed || (wpan.fcs_ok == 0 && wpan.frame_type != 2)",
        ]);
        assert_eq!(
            (wakeups, acks, data, bad),
            (all(|m| m.wakeups), all(|m| m.acks), all(|m| m.transmissions), 0)
        );
        assert!(wakeups > 60 && enh_acks > 10 && acks > enh_acks, "{wakeups} {enh_acks} {acks}");
        // 200 bytes are three frames of O-QPSK, of which two announce another.
        assert_eq!(pending > 0, phy == "oqpsk-250k");
        // Each wake-up frame contains the time from its end to the data frame, accurate within a
        // unit.
        let fields =
            "frame.time_epoch wpan.frame_type wpan.header_ie.csl.rendezvous_time frame.len wpan.dst16";
        let rows = tshark.fields("wpan.frame_type == 5 || wpan.frame_type == 1", fields);
        let rows: Vec<Vec<&str>> = rows.lines().map(|line| line.split('\t').collect()).collect();
        let number = |cell: &str| cell.parse::<f64>().unwrap();
        let mut announced: Vec<(f64, f64)> = Vec::new();
        let mut checked = 0;
        // Duration of a byte in seconds, bytes before a PSDU, and bytes of a wake-up frame.
        let (octet, header, wakeup) =
            if phy == "oqpsk-250k" { (32e-6, 6.0, 12.0) } else { (80e-6, 8.0, 14.0) };
        // Bytes of the capture's header before each frame.
        let mut tap = 0.0;
        for row in rows {
            // The time of a frame in the capture is that of its end.
            let end = number(row[0]);
            if row[1].ends_with('5') {
                assert_eq!(row[4], "0x0003", "the router wakes the first node only");
                announced.push((end, number(row[2]) * unit));
                tap = number(row[3]) - wakeup;
                continue;
            }
            let begins = end - (header + number(row[3]) - tap) * octet;
            for (end, rendezvous) in announced.drain(..) {
                let early = begins - (end + rendezvous);
                assert!((-1e-6..unit + 1e-6).contains(&early), "{early}");
                checked += 1;
            }
        }
        assert_eq!(checked, wakeups);
        // Acknowledgements contain a period of whole units, and a phase within it.
        let said = tshark.fields(enhanced, "wpan.header_ie.csl.phase wpan.header_ie.csl.period");
        for line in said.lines() {
            let (phase, period) = line.split_once('\t').unwrap();
            assert_eq!(number(period), (0.12 / unit).round());
            assert!(number(phase) <= number(period));
        }
    }
}
