//! Linux's `net.ipv4.*` as fields of a configuration.

use anabranch_core::tcp::{CongestionAlgorithm, DelayedAck, EcnMode, InitialWindow, Nagle, SackRole};
use anabranch_core::time::Duration;

use super::{Settings, shell};
use crate::outcome::{Step, Stop};

/// The settings of `defaults.sh`, which accompanies packetdrill's scripts, as far as they are
/// meaningful here.
pub(super) const DEFAULTS: &[(&str, &str)] = &[
    ("net.ipv4.tcp_rmem", "4096 540000 15728640"),
    ("net.ipv4.tcp_wmem", "4096 262144 4194304"),
    ("net.ipv4.tcp_timestamps", "1"),
    ("net.ipv4.tcp_syn_retries", "5"),
    ("net.ipv4.tcp_synack_retries", "5"),
    ("net.ipv4.tcp_sack", "1"),
    ("net.ipv4.tcp_congestion_control", "cubic"),
    ("net.ipv4.tcp_recovery", "1"),
];

impl Settings {
    /// Sets `key`, written with dots, with slashes or as a file.
    pub(super) fn sysctl(&mut self, line: usize, key: &str, value: &str) -> Step {
        let key = key.trim_start_matches("/proc/sys/").replace('/', ".");
        let numbers = shell::numbers(value).unwrap_or_default();
        let first = numbers.first().copied();
        let bad = || Stop::invalid(line, format_args!("`{value}` is not a value of `{key}`"));
        let number = || first.ok_or_else(bad);
        let name = key.strip_prefix("net.ipv4.").or_else(|| key.strip_prefix("net.core."));
        if let Some(name) = key.strip_prefix("anabranch.") {
            return self.own(line, name, value);
        }
        let seconds = |number: u64| Duration::from_secs(number.min(1 << 20));
        let config = &mut self.config;
        match name.unwrap_or(&key) {
            "tcp_rmem" | "rmem_max" => {
                let Some(max) = numbers.last() else { return Err(bad()) };
                // __tcp_select_window(): the smallest shift with which 16 bits can express the
                // largest buffer.
                config.window_scale = Some(max.max(&1).ilog2().saturating_sub(15).min(14) as u8);
            }
            "tcp_wmem" => {
                let [_, initial, most] = numbers[..] else { return Err(bad()) };
                let bounded = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX).min(1 << 26);
                config.send_buffer = bounded(initial);
                self.most_send_buffer = bounded(most);
            }
            "tcp_timestamps" => config.timestamps = number()? != 0,
            "tcp_sack" => config.sack = if number()? == 0 { SackRole::Off } else { SackRole::Both },
            "tcp_dsack" => config.dsack = number()? != 0,
            // Linux has no setting to use timestamps or D-SACK for detecting a spurious timeout.
            "tcp_frto" => config.undo = number()? != 0,
            "tcp_window_scaling" => {
                config.window_scale = if number()? == 0 { None } else { config.window_scale.or(Some(7)) };
            }
            "tcp_recovery" => config.rack_tlp = number()? & 1 != 0,
            "tcp_syn_retries" => config.syn_retries = u8::try_from(number()?).map_err(|_| bad())?,
            "tcp_synack_retries" => self.synack_retries = u8::try_from(number()?).map_err(|_| bad())?,
            "tcp_fin_timeout" => config.fin_wait = Some(seconds(number()?)),
            "tcp_keepalive_time" => self.keep_alive.idle = seconds(number()?),
            "tcp_keepalive_intvl" => self.keep_alive.interval = seconds(number()?),
            "tcp_keepalive_probes" => self.keep_alive.probes = u8::try_from(number()?).map_err(|_| bad())?,
            "tcp_retries2" => config.data_retries = u8::try_from(number()?).map_err(|_| bad())?,
            "tcp_notsent_lowat" => self.notsent_lowat = u32::try_from(number()?).unwrap_or(u32::MAX),
            "tcp_congestion_control" => {
                config.congestion = match value.trim() {
                    "cubic" => CongestionAlgorithm::Cubic,
                    "reno" => CongestionAlgorithm::NewReno,
                    "westwood" => CongestionAlgorithm::Westwood,
                    other => {
                        let reason = format!("congestion control `{other}`");
                        return Err(Stop::not_applicable(line, reason));
                    }
                }
            }
            "tcp_ecn" => {
                config.ecn = match number()? {
                    0 => EcnMode::Off,
                    1 => EcnMode::Request,
                    2 => EcnMode::Accept,
                    _ => return Err(Stop::not_applicable(line, "accurate ECN (RFC 9768)")),
                }
            }
            "tcp_mtu_probing" if number()? != 0 => {
                return Err(Stop::not_applicable(line, "packetization layer path MTU discovery (RFC 4821)"));
            }
            "tcp_reordering" if number()? != 3 => {
                return Err(Stop::not_applicable(line, "a duplicate threshold other than 3"));
            }
            name if WITHOUT_EFFECT.contains(&name) => {}
            _ => return Err(Stop::not_applicable(line, format_args!("the setting `{key}`"))),
        }
        Ok(())
    }

    /// Settings without a counterpart in Linux: `anabranch.*`, used only by scripts of this
    /// project.
    fn own(&mut self, line: usize, name: &str, value: &str) -> Step {
        let bad = || Stop::invalid(line, format_args!("`{value}` is not a value of `anabranch.{name}`"));
        let number = || value.trim().parse::<u16>().map_err(|_| bad());
        let config = &mut self.config;
        match name {
            "initial_window" => config.initial_window = InitialWindow::Segments(number()?),
            "rfc6928_window" => config.initial_window = InitialWindow::Rfc6928,
            // Time in milliseconds that an acknowledgement waits for a second segment; 0 is no
            // delay.
            "delayed_ack" => {
                config.delayed_ack = match number()? {
                    0 => DelayedAck::Off,
                    wait => {
                        DelayedAck::Every { segments: 2, timeout: Duration::from_millis(u64::from(wait)) }
                    }
                }
            }
            "nagle" => config.nagle = if number()? == 0 { Nagle::Off } else { Nagle::On },
            "limited_transmit" => config.limited_transmit = number()? != 0,
            "prr" => config.prr = number()? != 0,
            "abe" => config.abe = number()? != 0,
            "undo" => config.undo = number()? != 0,
            "sack_on_data" => config.sack_on_data = number()? != 0,
            "mss" => config.mss = number()?.max(1),
            "initial_rto" => config.rto.initial = Duration::from_millis(u64::from(number()?.max(1))),
            "min_rto" => {
                config.rto.min = Duration::from_millis(u64::from(number()?));
                config.rto.granularity = Duration::ZERO;
            }
            "max_rto" => config.rto.max = Duration::from_millis(u64::from(number()?.max(1))),
            "time_wait_reuse" => config.time_wait_reuse = number()? != 0,
            "time_wait" => config.time_wait = Duration::from_secs(u64::from(number()?)),
            "receive_buffer" => config.receive_buffer = value.trim().parse().map_err(|_| bad())?,
            _ => return Err(Stop::invalid(line, format_args!("there is no setting `anabranch.{name}`"))),
        }
        Ok(())
    }
}

/// Settings without an effect that a script can observe, or that select the only behaviour
/// available.
const WITHOUT_EFFECT: &[&str] = &[
    "ip_local_port_range",
    "tcp_abort_on_overflow",
    "tcp_adv_win_scale",
    "tcp_allowed_congestion_control",
    "tcp_autocorking",
    "tcp_available_congestion_control",
    "tcp_base_mss",
    "tcp_early_retrans",
    "tcp_ecn_option",
    "tcp_fack",
    "tcp_fastopen",
    "tcp_fastopen_key",
    "tcp_limit_output_bytes",
    "tcp_max_orphans",
    "tcp_max_syn_backlog",
    "tcp_max_tw_buckets",
    "tcp_min_rtt_wlen",
    "tcp_min_tso_segs",
    "tcp_moderate_rcvbuf",
    "tcp_mtu_probing",
    "tcp_no_metrics_save",
    "tcp_pacing_ca_ratio",
    "tcp_pacing_ss_ratio",
    "tcp_reordering",
    "tcp_retries1",
    "tcp_slow_start_after_idle",
    "tcp_syncookies",
    "tcp_thin_linear_timeouts",
    "tcp_tso_rtt_log",
    "tcp_tso_win_divisor",
    "tcp_workaround_signed_windows",
];
