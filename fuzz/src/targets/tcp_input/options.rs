//! Configurations within the documented limits.

use anabranch_core::tcp::{
    AdaptiveNewReno, AdaptivePhases, AutoTune, Backoff, ByteCounting, Config, CongestionAlgorithm,
    DelayedAck, EcnMode, InitialWindow, KeepAlive, Nagle, Push, Recovery, RtoConfig, SackRole,
};
use anabranch_core::time::Duration;
use arbitrary::{Result, Unstructured};

/// A valid configuration with buffers small enough to keep a run short.
pub(super) fn config(octets: &mut Unstructured<'_>) -> Result<Config> {
    if octets.ratio(1, 4)? {
        return Ok(*octets.choose(&[
            Config::default(),
            Config::modern(),
            Config::modern(),
            Config::paper(),
        ])?);
    }
    let mss = *octets.choose(&[1, 7, 100, 536, 1440, 1460, 9000, 65495])?;
    let most = if mss < 100 { 2000 } else { 70_000 };
    let adaptive = |phases| {
        let bounds = AdaptiveNewReno { w_min: 2, w_max: 12, update_every: 3, phases };
        CongestionAlgorithm::AdaptiveNewReno(bounds)
    };
    Ok(Config {
        mss,
        default_mss: *octets.choose(&[536, 1220])?,
        initial_window: *octets.choose(&[
            InitialWindow::Segments(1),
            InitialWindow::Segments(3),
            InitialWindow::Segments(u16::MAX),
            InitialWindow::Rfc6928,
        ])?,
        initial_ssthresh: *octets.choose(&[None, Some(0), Some(2000), Some(u32::MAX)])?,
        window_limit: *octets.choose(&[None, Some(1), Some(4), Some(64)])?,
        rto: rto(octets)?,
        delayed_ack: delayed_ack(octets)?,
        ack_on_push: octets.arbitrary()?,
        ack_gaps: octets.arbitrary()?,
        push: *octets.choose(&[Push::Buffer, Push::Window])?,
        sack: *octets.choose(&[SackRole::Off, SackRole::Receiver, SackRole::Sender, SackRole::Both])?,
        timestamps: octets.arbitrary()?,
        window_scale: *octets.choose(&[None, Some(0), Some(1), Some(7), Some(14)])?,
        nagle: *octets.choose(&[Nagle::On, Nagle::Off])?,
        limited_transmit: octets.arbitrary()?,
        recovery: *octets.choose(&[Recovery::NewReno, Recovery::RenoGoBackN])?,
        dsack: octets.arbitrary()?,
        sack_on_data: octets.arbitrary()?,
        ecn: *octets.choose(&[EcnMode::Off, EcnMode::Accept, EcnMode::Request])?,
        abe: octets.arbitrary()?,
        rack_tlp: octets.arbitrary()?,
        hystart: octets.arbitrary()?,
        pacing: octets.arbitrary()?,
        auto_tune: *octets.choose(&[
            None,
            Some(AutoTune { receive: 1 << 20, send: 1 << 20 }),
            Some(AutoTune::LINUX),
            Some(AutoTune { receive: 0, send: 1 << 20 }),
            Some(AutoTune { receive: 1 << 20, send: 0 }),
        ])?,
        prr: octets.arbitrary()?,
        undo: octets.arbitrary()?,
        congestion: *octets.choose(&[
            CongestionAlgorithm::NewReno,
            CongestionAlgorithm::Cubic,
            CongestionAlgorithm::Westwood,
            CongestionAlgorithm::Bbr,
            CongestionAlgorithm::Coupled,
            adaptive(AdaptivePhases::Grow),
            adaptive(AdaptivePhases::ExploreHold),
        ])?,
        byte_counting: *octets.choose(&[
            ByteCounting::Off,
            ByteCounting::On { limit: 1 },
            ByteCounting::On { limit: 2 },
        ])?,
        send_buffer: octets.int_in_range(0..=most)?,
        receive_buffer: octets.int_in_range(0..=most)?,
        time_wait: Duration::from_millis(octets.int_in_range(1..=60_000)?),
        time_wait_reuse: octets.arbitrary()?,
        fin_wait: *octets.choose(&[None, Some(Duration::from_secs(60)), Some(Duration::from_millis(300))])?,
        keep_alive: keep_alive(octets)?,
        syn_retries: octets.int_in_range(0..=6)?,
        data_retries: octets.int_in_range(0..=15)?,
        elfn: *octets.choose(&[None, Some(Duration::ZERO), Some(Duration::from_secs(2))])?,
        least_ssthresh: *octets.choose(&[2, 1, 64])?,
        ack_remainder: octets.arbitrary()?,
    })
}

pub(super) fn keep_alive(octets: &mut Unstructured<'_>) -> Result<Option<KeepAlive>> {
    let soon = KeepAlive { idle: Duration::from_secs(1), interval: Duration::from_millis(100), probes: 2 };
    Ok(*octets.choose(&[None, None, Some(KeepAlive::LINUX), Some(soon)])?)
}

pub(super) fn user_timeout(octets: &mut Unstructured<'_>) -> Result<Option<Duration>> {
    let after = [30, 1000, 20_000].map(|ms| Some(Duration::from_millis(ms)));
    Ok(*octets.choose(&[None, after[0], after[1], after[2]])?)
}

fn rto(octets: &mut Unstructured<'_>) -> Result<RtoConfig> {
    // Longer than 2 ms, the round trip of the network without disturbances.
    let min = octets.int_in_range(5..=1000)?;
    Ok(RtoConfig {
        initial: Duration::from_millis(octets.int_in_range(min..=3000)?),
        min: Duration::from_millis(min),
        max: Duration::from_millis(octets.int_in_range(min..=64_000)?),
        granularity: Duration::from_millis(octets.int_in_range(0..=200)?),
        backoff: *octets.choose(&[Backoff::Double, Backoff::Constant])?,
    })
}

fn delayed_ack(octets: &mut Unstructured<'_>) -> Result<DelayedAck> {
    Ok(match octets.int_in_range(0..=4)? {
        0 => DelayedAck::Off,
        segments => {
            DelayedAck::Every { segments, timeout: Duration::from_millis(octets.int_in_range(1..=500)?) }
        }
    })
}
