//! Packet scripts against one connection. Each line of a script has a time and an action; the
//! transcript records what the connection does.
//!
//! ```text
//! 0.1   < . 501:501 ack 1001 win 8000    # a segment arrives
//! 0.1   << . 501:501 ack 1001 win 8000   # a segment arrives, and the next one before we may send
//! 0.1   write 3000                       # the owner acts: write, read [N], close, release, abort, buffer N,
//!                                        # send-buffer N, no-route
//! +0.5  show cwnd                        # a value: state cwnd ssthresh flight rto timeouts srtt window unsent dropped
//!                                        # failures buffered
//! 2     wait                             # only time passes
//! ```
//!
//! A time is in seconds, from the start or, with `+`, from the previous line. Timers fire on the
//! way there. The transcript marks a sent segment with `>`, an event with `!`, a shown value with
//! `=`, and read data with `read`.

use std::fmt::Write;

use anabranch_core::segment::{Options, Segment, SeqNumber, Timestamps};
use anabranch_core::tcp::{
    ByteCounting, Config, Connection, DelayedAck, InitialWindow, Nagle, Recovery, RtoConfig, SackRole,
};
use anabranch_core::time::{Duration, Instant};
use bytes::Bytes;
use expect_test::Expect;

use crate::notation;

/// Runs `script` and compares the transcript with `expected`.
#[track_caller]
pub fn check(mut scene: Scene, script: &str, expected: Expect) {
    let transcript = scene.run(script);
    expected.assert_eq(&transcript);
}

/// A TCP configuration without options or delays: MSS 1000, an initial window of one segment,
/// time-outs of 1 s.
pub fn plain() -> Config {
    Config {
        mss: 1000,
        initial_window: InitialWindow::Segments(1),
        rto: RtoConfig { min: Duration::from_secs(1), ..Config::default().rto },
        delayed_ack: DelayedAck::Off,
        sack: SackRole::Off,
        timestamps: false,
        window_scale: None,
        nagle: Nagle::Off,
        limited_transmit: false,
        recovery: Recovery::NewReno,
        byte_counting: ByteCounting::On { limit: 2 },
        send_buffer: 1 << 20,
        receive_buffer: 8000,
        time_wait: Duration::from_secs(60),
        syn_retries: 2,
        data_retries: 3,
        ..Config::default()
    }
}

/// A connection in a given state at time 0. Our first data byte is 1001, the peer's is 501.
#[derive(Debug)]
pub struct Scene {
    /// The connection.
    pub connection: Connection,
    now: Instant,
    written: SeqNumber,
    out: String,
}

impl Scene {
    /// SYN-SENT, after the SYN was sent.
    pub fn syn_sent(config: Config) -> Self {
        Self::syn_sent_at(config, ISS)
    }

    /// SYN-SENT with the initial sequence number `iss`.
    pub fn syn_sent_at(config: Config, iss: u32) -> Self {
        let iss = SeqNumber(iss);
        let connection = Connection::connect(Instant::ZERO, config, LOCAL_PORT, REMOTE_PORT, iss);
        let mut this = Self { connection, now: Instant::ZERO, written: iss + 1, out: String::new() };
        this.drain();
        this.out.clear();
        this
    }

    /// SYN-RECEIVED by a passive open, after the SYN-ACK was sent.
    pub fn syn_received(config: Config) -> Self {
        let mut syn = notation::parse("S 500:500 win 8000").expect("a segment");
        syn.options = peer_options(&config);
        address(&mut syn);
        let iss = SeqNumber(ISS);
        let connection = Connection::accept(Instant::ZERO, config, &syn, iss).expect("a SYN is acceptable");
        let mut this = Self { connection, now: Instant::ZERO, written: iss + 1, out: String::new() };
        this.drain();
        this.out.clear();
        this
    }

    /// ESTABLISHED by an active open; the peer's window is 8000 bytes, whatever the scaling.
    pub fn established(config: Config) -> Self {
        Self::established_with(config, peer_options(&config))
    }

    /// ESTABLISHED with a peer that offered these options.
    pub fn established_with(config: Config, options: Options) -> Self {
        let mut this = Self::syn_sent(config);
        let mut answer = notation::parse("S. 500:500 ack 1001 win 8000").expect("a segment");
        answer.options = options;
        this.inject(answer);
        this.quietly("")
    }

    /// FIN-WAIT-1; our FIN is 1001.
    pub fn fin_wait_1(config: Config) -> Self {
        Self::established(config).quietly("0 close")
    }

    /// FIN-WAIT-2.
    pub fn fin_wait_2(config: Config) -> Self {
        Self::fin_wait_1(config).quietly("0 < . 501:501 ack 1002 win 8000")
    }

    /// CLOSE-WAIT; the peer's FIN was 501.
    pub fn close_wait(config: Config) -> Self {
        Self::established(config).quietly("0 < F. 501:501 ack 1001 win 8000")
    }

    /// CLOSING; the FINs have crossed.
    pub fn closing(config: Config) -> Self {
        Self::fin_wait_1(config).quietly("0 < F. 501:501 ack 1001 win 8000")
    }

    /// LAST-ACK.
    pub fn last_ack(config: Config) -> Self {
        Self::close_wait(config).quietly("0 close")
    }

    /// TIME-WAIT.
    pub fn time_wait(config: Config) -> Self {
        Self::fin_wait_2(config).quietly("0 < F. 501:501 ack 1002 win 8000")
    }

    /// Runs a script and drops the transcript.
    pub fn quietly(mut self, script: &str) -> Self {
        self.run(script);
        self
    }

    /// Runs a script and returns the transcript.
    ///
    /// # Panics
    /// A line is invalid: scripts are part of the test.
    pub fn run(&mut self, script: &str) -> String {
        self.drain();
        for line in script.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                self.line(line).unwrap_or_else(|why| panic!("{line}: {why}"));
            }
        }
        std::mem::take(&mut self.out)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (time, action) = line.split_once(char::is_whitespace).ok_or("a time and an action")?;
        let at = match time.strip_prefix('+') {
            Some(span) => self.now + seconds(span)?,
            None => Instant::ZERO + seconds(time)?,
        };
        self.advance(at);
        let action = action.trim();
        if let Some(segment) = action.strip_prefix("<<") {
            self.inject(notation::parse(segment)?);
            return Ok(());
        }
        if let Some(segment) = action.strip_prefix('<') {
            self.inject(notation::parse(segment)?);
        } else {
            self.act(action)?;
        }
        self.drain();
        Ok(())
    }

    fn act(&mut self, action: &str) -> Result<(), String> {
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        let number = || rest.trim().parse::<u32>().map_err(|_| format!("'{rest}' is no number"));
        match verb {
            "write" => self.write(number()?),
            "read" => self.read(if rest.is_empty() { u32::MAX } else { number()? }),
            "close" => self.connection.close(self.now),
            "abort" => self.connection.abort(self.now),
            "release" => self.connection.release(self.now),
            "no-route" => self.connection.handle_route_failure(self.now),
            "buffer" => self.connection.set_receive_buffer(number()?),
            "send-buffer" => self.connection.set_send_buffer(number()?),
            "show" => self.show(rest)?,
            "wait" => {}
            other => return Err(format!("'{other}' is no action")),
        }
        Ok(())
    }

    fn write(&mut self, n: u32) {
        let mut data = notation::octets(self.written, n as usize);
        match self.connection.write(&mut data) {
            Ok(taken) => {
                self.written += taken as u32;
                if taken < n as usize {
                    self.note(format_args!("write {taken} of {n}"));
                }
            }
            Err(error) => self.note(format_args!("write: {error}")),
        }
    }

    fn read(&mut self, max: u32) {
        let mut all: Vec<Bytes> = Vec::new();
        let mut left = max as usize;
        while let Some(data) = self.connection.read(left) {
            left -= data.len();
            all.push(data);
        }
        let all = all.concat();
        let ordered = all.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1));
        self.note(format_args!("read {}{}", all.len(), if ordered { "" } else { " OUT OF ORDER" }));
    }

    fn show(&mut self, what: &str) -> Result<(), String> {
        let info = self.connection.info();
        let segments = |octets: u32| f64::from(octets) / f64::from(info.mss);
        let value = match what {
            "state" => format!("{:?}", info.state),
            "cwnd" => format!("{}", segments(info.cwnd)),
            "ssthresh" if info.ssthresh == u32::MAX => "none".to_owned(),
            "ssthresh" => format!("{}", segments(info.ssthresh)),
            "flight" => info.in_flight.to_string(),
            "rto" => info.rto.to_string(),
            "timeouts" => info.timeouts.to_string(),
            "srtt" => format!("{:?}", info.srtt),
            "mss" => info.mss.to_string(),
            "window" => info.peer_window.to_string(),
            "unsent" => info.unsent.to_string(),
            "buffered" => info.buffered.to_string(),
            "dropped" => info.segments_dropped.to_string(),
            "failures" => info.route_failures.to_string(),
            other => return Err(format!("'{other}' is no figure")),
        };
        self.note(format_args!("= {what} {value}"));
        Ok(())
    }

    fn advance(&mut self, to: Instant) {
        while let Some(at) = self.connection.next_timeout().filter(|at| *at <= to) {
            self.now = self.now.max(at);
            self.connection.handle_timeout(self.now);
            self.drain();
        }
        self.now = to;
    }

    fn inject(&mut self, mut segment: Segment) {
        address(&mut segment);
        self.connection.handle_segment(self.now, segment);
    }

    fn drain(&mut self) {
        while let Some(segment) = self.connection.poll_transmit(self.now) {
            assert_eq!((segment.src_port, segment.dst_port), (LOCAL_PORT, REMOTE_PORT));
            if !segment.payload.is_empty() {
                assert_eq!(segment.payload, notation::octets(segment.seq, segment.payload.len()));
            }
            self.note(format_args!("> {}", notation::format(&segment)));
        }
        while let Some(event) = self.connection.poll_event() {
            self.note(format_args!("! {event:?}"));
        }
    }

    fn note(&mut self, text: std::fmt::Arguments<'_>) {
        let nanos = self.now.as_nanos();
        let (whole, millis) = (nanos / 1_000_000_000, nanos / 1_000_000 % 1000);
        writeln!(self.out, "{whole}.{millis:03} {text}").expect("a String takes everything");
    }
}

/// A peer that accepts all options that `config` offers, without scaling its own window.
fn peer_options(config: &Config) -> Options {
    Options {
        mss: Some(1000),
        window_scale: config.window_scale.map(|_| 0),
        sack_permitted: true,
        timestamps: config.timestamps.then_some(Timestamps { value: 1, echo: 0 }),
        ..Options::default()
    }
}

fn address(segment: &mut Segment) {
    segment.src_port = REMOTE_PORT;
    segment.dst_port = LOCAL_PORT;
}

/// Parses decimal seconds exactly, to the nanosecond.
fn seconds(text: &str) -> Result<Duration, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let nanos = format!("{fraction:0<9}");
    match (whole.parse::<u64>(), nanos.parse::<u64>()) {
        (Ok(whole), Ok(nanos)) if nanos < 1_000_000_000 => {
            Ok(Duration::from_secs(whole) + Duration::from_nanos(nanos))
        }
        _ => Err(format!("'{text}' is no time")),
    }
}

const LOCAL_PORT: u16 = 49_152;
const REMOTE_PORT: u16 = 80;
const ISS: u32 = 1000;
