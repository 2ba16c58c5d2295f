//! Energy by state, and the end of the energy.

use anabranch_core::time::{Duration, Instant};
use anabranch_sim::wifi::{AirFrame, Effect, Outcome, PowerConfig, SendError, Station, WifiConfig};

use super::cases::{done, micros};
use crate::dcf::{Dcf, Happening, after, row};

#[test]
fn ns2_counts_the_time_on_air_at_both_ends() {
    let mut dcf =
        Dcf::new(WifiConfig::dsss(100.0), &[(0.0, 0.0), (80.0, 0.0), (150.0, 0.0), (500.0, 0.0)], 1);
    dcf.script(&[(1000, 0, Some(1), 1000)]);
    let now = after(Duration::from_secs(1));
    // Data of 4192 µs, an acknowledgement of 304 µs: all stations within 220 m use energy for both,
    // whatever the destination.
    for (station, joules) in [(0, 0.2818 * 4496e-6), (1, 0.2818 * 4496e-6), (2, 0.2818 * 4496e-6), (3, 0.0)] {
        let spent = dcf.wifi.energy_j(now, Station(station));
        assert!((spent - joules).abs() < 1e-12, "{station}: {spent} J");
        let time = dcf.wifi.state_time(now, Station(station));
        assert_eq!(time.transmit + time.receive + time.listen + time.off, Duration::from_secs(1));
    }
    assert_eq!(dcf.wifi.state_time(now, Station(0)).transmit, micros(4192));
    assert_eq!(dcf.wifi.state_time(now, Station(0)).receive, micros(304));
}

#[test]
fn a_station_without_energy_is_down_for_good() {
    // Enough for 10 frames of 4192 µs and 10 acknowledgements.
    let joules = 0.2818 * 10.0 * 4496e-6;
    let config = WifiConfig { initial_energy_j: Some(joules), ..WifiConfig::dsss(100.0) };
    let mut dcf = Dcf::new(config, &row(1, 80.0), 1);
    dcf.wifi.show_frames();
    let mut effects = Vec::new();
    dcf.send(0, Some(1), 1000, 0).unwrap();
    dcf.run(Instant::FAR_FUTURE, |dcf, happening| {
        let Happening::Effect(effect) = happening else { return };
        effects.push(effect);
        if let Effect::Done { tag, outcome: Outcome::Acknowledged, .. } = effect {
            // The last one may find the station down.
            let _ = dcf.send(0, Some(1), 1000, tag + 1);
        }
    });
    let exhausted: Vec<_> = effects.iter().filter(|e| matches!(e, Effect::Exhausted { .. })).collect();
    assert_eq!(exhausted.len(), 2, "both are");
    let acknowledged = done(&effects).iter().filter(|d| d.2 == Outcome::Acknowledged).count();
    assert!((9..=10).contains(&acknowledged), "{acknowledged}");
    assert!(effects.iter().filter(|e| matches!(e, Effect::Frame(AirFrame { .. }))).count() >= 19);
    assert_eq!(dcf.send(0, None, 10, 0), Err(SendError::Down));
    dcf.set_up(0, true);
    assert!(!dcf.wifi.is_up(Station(0)));
    let now = dcf.now + Duration::from_secs(100);
    assert!((dcf.wifi.energy_j(now, Station(0)) / joules - 1.0).abs() < 0.11);
}

#[test]
fn idling_can_be_what_it_costs() {
    let power = PowerConfig { idle: 0.5, ..PowerConfig::ns2() };
    let config = WifiConfig { power, initial_energy_j: Some(1.0), ..WifiConfig::dsss(100.0) };
    let mut dcf = Dcf::new(config, &row(1, 80.0), 1);
    assert!((dcf.wifi.energy_j(after(Duration::from_secs(1)), Station(1)) - 0.5).abs() < 1e-12);
    // At 3 s both have used up their energy, which is detected when the frame is sent.
    let effects = dcf.script(&[(3_000_000, 0, None, 1000)]);
    assert_eq!(effects.iter().filter(|e| matches!(e, Effect::Exhausted { .. })).count(), 2);
    assert_eq!(done(&effects), [(0, 0, Outcome::Down, 0)]);
}
