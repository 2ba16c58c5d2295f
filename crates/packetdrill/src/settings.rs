//! Converts options and shell commands of a script to settings of the host.

mod shell;
mod sysctl;

use std::net::IpAddr;

use anabranch_core::tcp::{ByteCounting, Config, DelayedAck, EcnMode, InitialWindow, KeepAlive, Nagle};
use anabranch_core::time::Duration;

use crate::outcome::{Step, Stop};
use crate::script::{Action, Script, Setting, Shell, Value};

/// The host on which a script runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Configuration of its connections.
    pub config: Config,
    /// Number of timeouts of a SYN-ACK; those of a SYN are in `config`.
    pub synack_retries: u8,
    /// Keep-alive of a socket with `SO_KEEPALIVE`.
    pub keep_alive: KeepAlive,
    /// `tcp_notsent_lowat`: a socket is writable while at most this many bytes are unsent.
    pub notsent_lowat: u32,
    /// The last value of `tcp_wmem`: limit up to which a send buffer grows with the window.
    pub most_send_buffer: u32,
    /// The largest segment of the peer: a packet of the script is split into several segments.
    pub peer_mss: Option<u32>,
    /// Allowed deviation of an event from its time.
    pub tolerance: Duration,
    /// Lower limit of the tolerance, in thousandths of the time since the last event.
    pub tolerance_permille: u64,
    /// Each packet of the script is one segment.
    pub strict_segments: bool,
    /// Duration of one tick of the timestamp clock; `None` does not check TSval.
    pub timestamp_tick: Option<Duration>,
    /// Addresses are IPv6.
    pub ipv6: bool,
    /// Further addresses, which the host announces to MPTCP peers: `ip mptcp endpoint`.
    pub endpoints: Vec<IpAddr>,
    /// The host opens a subflow to each address that a peer announces: `ip mptcp limits`.
    pub accepts_addresses: bool,
}

impl Default for Settings {
    /// Linux as expected by packetdrill's scripts: an initial window of 10 segments, CUBIC,
    /// RACK-TLP, PRR, Nagle's algorithm, no delayed acknowledgements (Linux begins in quick-ACK
    /// mode), and slow start by all bytes that an acknowledgement covers (RFC 3465 allows 2
    /// segments).
    fn default() -> Self {
        let config = Config {
            mss: 1460,
            initial_window: InitialWindow::Segments(10),
            delayed_ack: DelayedAck::Off,
            nagle: Nagle::On,
            ecn: EcnMode::Accept,
            abe: false,
            byte_counting: ByteCounting::On { limit: u8::MAX },
            send_buffer: 87_040,
            receive_buffer: 65_535,
            ..Config::modern()
        };
        Self {
            config,
            synack_retries: 5,
            keep_alive: KeepAlive::LINUX,
            notsent_lowat: u32::MAX,
            most_send_buffer: 4 << 20,
            peer_mss: None,
            tolerance: Duration::from_millis(4),
            tolerance_permille: 125,
            strict_segments: false,
            timestamp_tick: None,
            ipv6: false,
            endpoints: Vec::new(),
            accepts_addresses: false,
        }
    }
}

impl Settings {
    /// The settings of a script, from its options and its first shell command.
    pub(crate) fn of(script: &Script) -> Step<Self> {
        let mut this = Self::default();
        for option in &script.options {
            this.option(option)?;
        }
        if let Some(init) = &script.init {
            this.command(init)?;
        }
        if let Some(line) = reads_error_queue(script)
            && (sets(script, "SO_ZEROCOPY") || !sets(script, "SO_TIMESTAMPING"))
        {
            let message = "messages of the error queue other than timestamps of sent data";
            return Err(Stop::not_applicable(line, message));
        }
        if sets_nodelay(script) {
            // Nagle's algorithm is fixed for a connection here but a socket option in Linux.
            // Moreover, Linux never holds back a record (`MSG_EOR`) that is followed by another
            // one.
            this.config.nagle = Nagle::Off;
        }
        Ok(this)
    }

    /// Executes a shell command.
    pub(crate) fn command(&mut self, shell: &Shell) -> Step {
        shell::commands(&shell.text).iter().try_for_each(|words| self.words(shell.line, words))
    }

    fn option(&mut self, option: &Setting) -> Step {
        let line = option.line;
        let text = option.value.as_deref().unwrap_or_default();
        let number = || {
            text.parse::<u64>().ok().filter(|n| *n <= 1_000_000_000).ok_or_else(|| {
                let name = &option.name;
                Stop::invalid(line, format_args!("`--{name}` needs a whole number up to 10^9, not `{text}`"))
            })
        };
        match option.name.as_str() {
            "tolerance_usecs" => self.tolerance = Duration::from_micros(number()?),
            "tolerance_percent" => {
                let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
                let Some(percent) = percent else {
                    let message = "`--tolerance_percent` needs a number from 0 to 100";
                    return Err(Stop::invalid(line, message));
                };
                self.tolerance_permille = (percent * 10.0) as u64;
            }
            "strict_segments" => self.strict_segments = true,
            "tcp_ts_tick_usecs" => {
                let tick = number()?;
                self.timestamp_tick = (tick > 0).then(|| Duration::from_micros(tick));
            }
            "mss" => self.peer_mss = u32::try_from(number()?).ok().filter(|mss| *mss > 0),
            "ip_version" if text == "ipv4" => {}
            "ip_version" if text == "ipv6" => {
                (self.config.mss, self.config.default_mss, self.ipv6) = (1440, 1220, true);
            }
            "ip_version" => return Err(Stop::not_applicable(line, "IPv4-mapped addresses")),
            "mtu" => {
                let mtu = number()?;
                let mss = mtu.checked_sub(40).and_then(|mss| u16::try_from(mss).ok()).filter(|mss| *mss > 0);
                let Some(mss) = mss else {
                    return Err(Stop::invalid(line, "`--mtu` must be between 41 and 65575"));
                };
                self.config.mss = mss;
            }
            "speed" | "bind_port" | "code_command" | "code_format" | "code_sockopt" | "connect_port"
            | "define" | "gateway_ip" | "init_scripts" | "local_ip" | "netmask_ip" | "no_cleanup"
            | "non_fatal" | "remote_ip" | "send_omit_free" | "so_filename" | "udp_encaps" | "verbose"
            | "wire_client_dev" | "wire_server_dev" | "debug" => {}
            other => return Err(Stop::invalid(line, format_args!("packetdrill has no option `--{other}`"))),
        }
        Ok(())
    }

    /// The host's first address, as in packetdrill.
    pub(crate) fn local(&self) -> IpAddr {
        self.address("192.168.0.1", "fd3d:fa7b:d17d::1")
    }

    /// The first address of peers.
    pub(crate) fn remote(&self) -> IpAddr {
        self.address("192.0.2.1", "fd3d:fa7b:d17d:8888::1")
    }

    fn address(&self, ipv4: &str, ipv6: &str) -> IpAddr {
        (if self.ipv6 { ipv6 } else { ipv4 }).parse().expect("an address")
    }

    /// `ip mptcp`.
    fn path_manager(&mut self, line: usize, words: &[&str]) -> Step {
        match words {
            ["endpoint", "flush"] => self.endpoints.clear(),
            ["endpoint", "add", address, "signal"] => {
                let wrong = || Stop::invalid(line, format_args!("`{address}` is not an address"));
                self.endpoints.push(address.parse().map_err(|_| wrong())?);
            }
            ["limits", "set", rest @ ..] => {
                let limit = rest.iter().position(|word| *word == "add_addr_accepted");
                let limit = limit.and_then(|at| rest.get(at + 1));
                self.accepts_addresses = limit.is_some_and(|limit| *limit != "0");
            }
            _ => return Err(Stop::not_applicable(line, format_args!("`ip mptcp {}`", words.join(" ")))),
        }
        Ok(())
    }

    fn words(&mut self, line: usize, words: &[String]) -> Step {
        let Some(program) = words.first() else { return Ok(()) };
        let name = program.rsplit('/').next().unwrap_or(program);
        match name {
            "defaults.sh" => {
                sysctl::DEFAULTS.iter().try_for_each(|(key, value)| self.sysctl(line, key, value))
            }
            "sysctl" | "set_sysctls.py" => {
                words[1..].iter().try_for_each(|word| match word.split_once('=') {
                    Some((key, value)) => self.sysctl(line, key, value),
                    None => Ok(()),
                })
            }
            "tc" if words.windows(2).any(|pair| pair[0] == "limit" && pair[1] == "0") => {
                Err(Stop::not_applicable(line, "a queue that drops every packet"))
            }
            "ip" if words.iter().any(|word| ROUTE.contains(&word.as_str())) => {
                Err(Stop::not_applicable(line, "metrics of a route (mtu, advmss, initcwnd, ...)"))
            }
            "echo" => match words {
                [_, value, to, file] if to == ">" && file.starts_with("/proc/sys/") => {
                    self.sysctl(line, file, value)
                }
                _ => Ok(()),
            },
            "ip" if words.get(1).is_some_and(|word| word == "mptcp") => {
                let words: Vec<&str> = words[2..].iter().map(String::as_str).collect();
                self.path_manager(line, &words)
            }
            // Of packetdrill's scripts for MPTCP: a host that accepts announced addresses, and one
            // that also announces the address after its first.
            "client.sh" | "server.sh" => {
                self.endpoints.clear();
                if name == "server.sh" {
                    self.endpoints.push(self.address("192.168.0.2", "fd3d:fa7b:d17d::2"));
                }
                self.accepts_addresses = true;
                Ok(())
            }
            "tc" | "ip" | "ethtool" | "rm" | "dd" | "true" | ":" | "sleep" | "ifconfig" => Ok(()),
            _ if name.starts_with("sysctl_restore") => Ok(()),
            _ => Err(Stop::not_applicable(line, format_args!("the shell command `{program}`"))),
        }
    }
}

/// Metrics of a route that would change a connection.
const ROUTE: &[&str] =
    &["mtu", "advmss", "initcwnd", "initrwnd", "rto_min", "quickack", "congctl", "features"];

/// The line of the first call that reads the error queue.
fn reads_error_queue(script: &Script) -> Option<usize> {
    let wanted = Value::Word("MSG_ERRQUEUE".to_owned());
    script.events.iter().find_map(|event| match &event.action {
        Action::Call(call) => (call.args.get(2) == Some(&wanted)).then_some(event.line),
        _ => None,
    })
}

/// True if the script sets this socket option.
fn sets(script: &Script, option: &str) -> bool {
    let wanted = Value::Word(option.to_owned());
    script.events.iter().any(|event| match &event.action {
        Action::Call(call) => call.name == "setsockopt" && call.args.get(2) == Some(&wanted),
        _ => false,
    })
}

/// True if the script disables Nagle's algorithm anywhere, or sends records.
fn sets_nodelay(script: &Script) -> bool {
    script.events.iter().any(|event| match &event.action {
        Action::Call(call) => {
            call.args.get(3) == Some(&Value::Word("MSG_EOR".to_owned()))
                || call.name == "setsockopt"
                    && call.args.get(2) == Some(&Value::Word("TCP_NODELAY".to_owned()))
                    && call.args.get(3) == Some(&Value::List(vec![Value::Int(1)]))
        }
        _ => false,
    })
}
