//! A pool of send buffers, with connections that come, go, and report anything.

use std::collections::BTreeMap;

use anabranch_core::sockbuf::{
    Assignment, Config, ConnectionId, Deviation, Excess, FlowView, Gains, Kind, PidConfig, PolicyConfig,
    SetPoint, Tuner, View,
};
use anabranch_core::time::{Duration, Instant};
use arbitrary::{Result, Unstructured};

use crate::probe::Probe;

/// An input that ends in the middle of a step ends the run there.
pub(super) fn run(input: &[u8], probe: &mut Probe) {
    // A run ends when the input is used up.
    let _ = drive(&mut Unstructured::new(input), probe);
}

fn drive(octets: &mut Unstructured<'_>, probe: &mut Probe) -> Result<()> {
    let config = config(octets)?;
    probe.say(|| format!("{config:?}"));
    probe.feature(std::mem::discriminant(&config.policy));
    let mut now = Instant::from_nanos(0);
    let mut tuner = match Tuner::new(now, config) {
        Ok(tuner) => tuner,
        Err(error) => {
            probe.feature(std::mem::discriminant(&error));
            return Ok(());
        }
    };
    let mut owner = Owner { threshold: config.threshold, buffers: BTreeMap::new() };
    for _ in 0..MAX_STEPS {
        let id = ConnectionId(octets.int_in_range(0..=5)?);
        match octets.int_in_range(0..=7)? {
            0 | 1 => {
                let kind = *octets.choose(&[Kind::Single, Kind::Striped])?;
                let mss = segment(octets)?;
                let opened = tuner.open(id, kind, mss);
                probe.say(|| format!("open {id:?} {kind:?} {mss}: {opened:?}"));
                match opened {
                    Ok(()) => assert!(owner.buffers.insert(id, Buffer::default()).is_none(), "open twice"),
                    Err(error) => probe.feature(("open", std::mem::discriminant(&error))),
                }
            }
            2 => {
                probe.say(|| format!("close {id:?}"));
                tuner.close(id);
                owner.buffers.remove(&id);
            }
            3 => {
                now = tuner.next_timeout().unwrap_or(now).max(now);
                tuner.handle_views(now, &[]);
                assert!(tuner.next_timeout().is_none_or(|due| due > now), "answered, and still due");
            }
            _ => {
                now += Duration::from_millis(octets.int_in_range(0..=600)?);
                view(octets, now, id, &mut tuner, &mut owner, probe)?;
            }
        }
        owner.obey(&mut tuner, probe);
    }
    Ok(())
}

fn config(octets: &mut Unstructured<'_>) -> Result<Config> {
    let gain = |octets: &mut Unstructured<'_>| {
        Ok(if octets.ratio(1, 8)? {
            octets.arbitrary()?
        } else {
            *octets.choose(&[0.0, 0.01, 0.25, 4.0, 1e3])?
        })
    };
    let pid = PidConfig {
        gains: Gains { kp: gain(octets)?, ki: gain(octets)?, kd: gain(octets)? },
        set_point: *octets.choose(&[SetPoint::PerFlow, SetPoint::Slowest])?,
        deviation: *octets.choose(&[Deviation::Absolute, Deviation::Signed])?,
        excess: *octets.choose(&[Excess::Bandwidth, Excess::Product])?,
        ..PidConfig::paper()
    };
    let policy = match octets.int_in_range(0..=7)? {
        0 => PolicyConfig::Atbt,
        1 => PolicyConfig::AtbtOriginal,
        2 => PolicyConfig::RightSizing,
        3 => PolicyConfig::Fixed(octets.arbitrary()?),
        _ => PolicyConfig::Pid(pid),
    };
    let threshold = *octets.choose(&[0, 1, 4000, 50_000, 2_000_000, 1 << 50, u64::MAX])?;
    let initial = *octets.choose(&[0, 128_000, u64::MAX])?;
    let period = Duration::from_millis(*octets.choose(&[0, 1, 500, 500])?);
    Ok(Config { threshold, period, initial, policy })
}

fn view(
    octets: &mut Unstructured<'_>,
    now: Instant,
    id: ConnectionId,
    tuner: &mut Tuner,
    owner: &mut Owner,
    probe: &mut Probe,
) -> Result<()> {
    let occupied = match octets.int_in_range(0..=7)? {
        0 => octets.arbitrary()?,
        // Mostly a buffer within its limit: empty, full, or in between.
        part => owner.buffers.get(&id).map_or(0, |buffer| buffer.limit / 6 * (part - 1)),
    };
    let mut flows = Vec::new();
    for interface in 0..octets.int_in_range(0..=3)? {
        flows.push(FlowView {
            interface,
            bandwidth: match octets.int_in_range(0..=7)? {
                0 => None,
                1 => Some(octets.arbitrary()?),
                _ => Some(f64::from(octets.int_in_range(0..=100_000_000_u32)?)),
            },
            rtt: match octets.int_in_range(0..=7)? {
                0 => None,
                1 => Some(Duration::from_nanos(octets.arbitrary()?)),
                _ => Some(Duration::from_millis(octets.int_in_range(0..=1000)?)),
            },
            window: if octets.ratio(1, 8)? {
                octets.arbitrary()?
            } else {
                octets.int_in_range(0..=1 << 20)?
            },
            mss: segment(octets)?,
        });
    }
    let view = View { id, occupied, acknowledged: octets.arbitrary::<u32>()?.into(), flows: &flows };
    probe.say(|| format!("{now:?} {view:?}"));
    if let Some(buffer) = owner.buffers.get_mut(&id) {
        buffer.occupied = occupied;
    }
    let before = tuner.counters();
    tuner.handle_views(now, &[view]);
    let after = tuner.counters();
    probe.feature((
        after.cut > before.cut,
        after.bad_bandwidths > before.bad_bandwidths,
        after.bad_segments > before.bad_segments,
        after.unknown > before.unknown,
        after.overfull > before.overfull,
    ));
    Ok(())
}

fn segment(octets: &mut Unstructured<'_>) -> Result<u32> {
    Ok(if octets.ratio(1, 8)? { octets.arbitrary()? } else { *octets.choose(&[0, 1, 536, 1460])? })
}

/// Owner of the buffers, who follows the pool's decisions.
struct Owner {
    threshold: u64,
    buffers: BTreeMap<ConnectionId, Buffer>,
}

#[derive(Default)]
struct Buffer {
    limit: u64,
    occupied: u64,
}

impl Owner {
    fn obey(&mut self, tuner: &mut Tuner, probe: &mut Probe) {
        let mut answers = 0;
        while let Some(answer) = tuner.poll_assignment() {
            probe.say(|| format!("{answer:?}"));
            let Assignment { id, target, limit } = answer;
            let buffer = self.buffers.get_mut(&id).expect("an answer for a connection that is not open");
            probe.feature((limit.cmp(&target), limit.cmp(&buffer.limit), limit == 0));
            assert!(limit >= buffer.limit.min(buffer.occupied), "what is in the buffer has no room");
            buffer.limit = limit;
            let sum: u64 = self.buffers.values().map(|buffer| buffer.limit).sum();
            assert!(sum <= self.threshold, "more than the pool");
            answers += 1;
            assert!(answers <= 2 * self.buffers.len(), "there is no end of answers");
        }
        let connections = tuner.connections();
        assert_eq!(connections.len(), self.buffers.len());
        assert!(connections.iter().map(|c| c.target).sum::<u64>() <= self.threshold, "targets do not fit");
        for connection in connections {
            assert!(connection.target >= u64::from(connection.mss), "less than one segment");
            assert_eq!(connection.limit, self.buffers[&connection.id].limit, "the owner was not told");
        }
    }
}

/// Limit on the steps of a run.
const MAX_STEPS: usize = 300;
