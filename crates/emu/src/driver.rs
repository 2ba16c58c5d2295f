//! The loop between the kernel and the simulator.

use std::io;
use std::os::fd::AsFd;

use anabranch_core::time::{Duration, Instant};
use anabranch_scenario::Scenario;
use anabranch_scenario::emulation::OnLag;
use anabranch_sim::address::address_of;
use anabranch_sim::octets;
use anabranch_sim::packet::Packet;
use anabranch_sim::sim::Simulation;
use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;

use crate::clock::Clock;
use crate::commands::{Commands, Outcome, Output};
use crate::device::{End, Ends};
use crate::error::Error;
use crate::ingress::{Crossings, Incoming, Ingress};
use crate::interrupt::Interrupt;
use crate::lag::{Lag, LagReport, Verdict};

/// Limit of packets read from one device before other devices and due events have their turn.
const BURST: usize = 32;
/// Size of the receive buffer in bytes, which exceeds every IP packet.
const BUFFER: usize = 65_536;

/// Why an emulation has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The stop time was reached.
    Stop,
    /// A signal arrived.
    Interrupted,
    /// The commands of the scenario have ended.
    Commands,
    /// Events were too late, and the scenario stops in that case.
    Late,
}

/// Traffic of one TUN device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Traffic {
    /// Number of packets from the kernel into the network.
    pub packets_in: u64,
    /// Number of bytes in these packets.
    pub bytes_in: u64,
    /// Number of packets from the network to the kernel.
    pub packets_out: u64,
    /// Number of bytes in these packets.
    pub bytes_out: u64,
    /// Number of packets from the kernel with an address outside the network.
    pub foreign: u64,
    /// Number of invalid packets from the kernel.
    pub bad: u64,
    /// Number of packets from the network that the kernel did not accept.
    pub refused: u64,
}

/// Result of an emulation.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Why it has ended.
    pub ended: Ended,
    /// Duration.
    pub elapsed: Duration,
    /// Traffic of each device, in the order of [`Ends::iter`].
    pub traffic: Vec<Traffic>,
    /// Lag of the events.
    pub lag: LagReport,
    /// Commands that were started, in order.
    pub commands: Vec<Outcome>,
}

/// A lag above the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// When the events were executed.
    pub at: Instant,
    /// The lag.
    pub lag: Duration,
    /// The limit.
    pub limit: Duration,
}

impl Ends {
    /// Runs `sim`, which is that of `scenario` and has not begun, in step with real time until
    /// `stop`, a signal or the end of the scenario's commands, whose standard output goes to
    /// `output`. Calls `warn` for lags above the limit, at most once a second.
    pub fn run(
        &self,
        sim: &mut Simulation,
        scenario: &Scenario,
        (interrupt, stop, output): (&Interrupt, Instant, Output),
        warn: impl FnMut(Late),
    ) -> Result<Report, Error> {
        let section = &scenario.emulation;
        let clock = Clock::start();
        let nodes: Vec<_> = self.ends.iter().map(|end| end.node).collect();
        let crossings = Crossings::new(scenario);
        let ingress = |end: &End| {
            let own = (end.node, end.address);
            Ingress::new(self.ip, own, self.hosts.clone(), crossings.clone(), nodes.clone())
        };
        let driver = Driver {
            ends: &self.ends,
            ingress: self.ends.iter().map(ingress).collect(),
            traffic: vec![Traffic::default(); self.ends.len()],
            buffer: vec![0; BUFFER],
            ip: self.ip,
            sim,
            interrupt,
            clock,
            commands: Commands::start(scenario, clock, output).map_err(Error::Wait)?,
            lag: Lag::new(section.lag_limit.0),
            on_lag: section.on_lag,
            warn,
        };
        driver.run(stop)
    }
}

struct Driver<'a, W> {
    ends: &'a [End],
    ingress: Vec<Ingress>,
    traffic: Vec<Traffic>,
    buffer: Vec<u8>,
    ip: anabranch_sim::packet::IpVersion,
    sim: &'a mut Simulation,
    interrupt: &'a Interrupt,
    clock: Clock,
    commands: Option<Commands>,
    lag: Lag,
    on_lag: OnLag,
    warn: W,
}

/// Result of a wait.
struct Ready {
    interrupted: bool,
    /// Whether all commands have ended.
    over: bool,
    ends: Vec<bool>,
}

impl<W: FnMut(Late)> Driver<'_, W> {
    fn run(mut self, stop: Instant) -> Result<Report, Error> {
        let ended = loop {
            let ready = self.wait(stop)?;
            let now = self.clock.now();
            let late = self.let_happen(now, stop);
            if late && self.on_lag == OnLag::Stop {
                break Ended::Late;
            }
            if ready.interrupted {
                break Ended::Interrupted;
            }
            for (i, _) in ready.ends.iter().enumerate().filter(|(_, ready)| **ready) {
                self.take_in(i)?;
            }
            // A packet that has nowhere to go is answered at once, without an event.
            self.send_departed();
            if ready.over {
                break Ended::Commands;
            }
            if now >= stop {
                break Ended::Stop;
            }
        };
        let elapsed = self.clock.now().saturating_since(Instant::ZERO);
        let commands = self.commands.map_or_else(Vec::new, Commands::finish);
        Ok(Report { ended, elapsed, traffic: self.traffic, lag: self.lag.report(), commands })
    }

    /// Waits for a packet, the next event or a signal.
    fn wait(&mut self, stop: Instant) -> Result<Ready, Error> {
        let next = self.sim.next_event().map_or(stop, |due| due.min(stop));
        let timeout = self.clock.until(next);
        let mut fds = vec![PollFd::from_borrowed_fd(self.interrupt.as_fd(), PollFlags::IN)];
        fds.extend(self.ends.iter().map(|end| PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN)));
        fds.extend(self.commands.iter().map(|all| PollFd::from_borrowed_fd(all.as_fd(), PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            // The signal also makes its own descriptor readable, which the next poll reports.
            Err(error) if error == rustix::io::Errno::INTR => fds.iter_mut().for_each(PollFd::clear_revents),
            Err(error) => return Err(Error::Wait(io::Error::from(error))),
        }
        for (end, fd) in self.ends.iter().zip(&fds[1..]) {
            if fd.revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
                return Err(Error::Gone(end.device.clone()));
            }
        }
        let readable = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::IN);
        let (of_ends, of_commands) = fds[1..].split_at(self.ends.len());
        Ok(Ready {
            interrupted: readable(&fds[0]),
            over: of_commands.iter().any(readable),
            ends: of_ends.iter().map(readable).collect(),
        })
    }

    /// Executes all due events and passes on the packets that leave the network. Returns true if
    /// the events were too late.
    fn let_happen(&mut self, now: Instant, stop: Instant) -> bool {
        let due = self.sim.next_event().filter(|due| *due <= now.min(stop));
        let verdict = due.map_or(Verdict::Fine, |due| self.lag.record(due, now));
        if let (Verdict::Late, Some(due)) = (verdict, due) {
            (self.warn)(Late { at: now, lag: now.saturating_since(due), limit: self.lag.limit() });
        }
        self.sim.catch_up(now.min(stop));
        self.send_departed();
        verdict != Verdict::Fine
    }

    /// Passes packets that have left the network to the kernel.
    fn send_departed(&mut self) {
        while let Some(packet) = self.sim.take_departed() {
            let Some(i) = self.device_for(&packet) else { continue };
            let traffic = &mut self.traffic[i];
            match octets::write(self.ip, &packet) {
                Ok(octets) if self.ends[i].send(&octets) => {
                    traffic.packets_out += 1;
                    traffic.bytes_out += octets.len() as u64;
                }
                Ok(_) | Err(_) => traffic.refused += 1,
            }
        }
    }

    /// The device by which a packet reaches the kernel: that of its destination address, or the
    /// node's first one for the hosts behind it.
    fn device_for(&self, packet: &Packet) -> Option<usize> {
        let behind = packet.outer.as_ref().and_then(|outer| outer.dst);
        let to = behind.unwrap_or_else(|| address_of(self.ip, packet.dst));
        let of_node = |end: &End| end.node == packet.dst;
        let exact = self.ends.iter().position(|end| of_node(end) && end.takes(packet.src, to));
        exact.or_else(|| self.ends.iter().position(of_node))
    }

    /// Reads packets from a device.
    fn take_in(&mut self, i: usize) -> Result<(), Error> {
        let (end, traffic, now) = (&self.ends[i], &mut self.traffic[i], self.sim.now());
        for _ in 0..BURST {
            let Some(packet) = end.receive(&mut self.buffer)? else { return Ok(()) };
            match self.ingress[i].handle(now, packet) {
                Incoming::Foreign => traffic.foreign += 1,
                Incoming::Bad => traffic.bad += 1,
                taken => {
                    traffic.packets_in += 1;
                    traffic.bytes_in += packet.len() as u64;
                    if let Incoming::Datagram(packet) = taken {
                        self.sim.send_from_outside(end.node, packet);
                    }
                }
            }
        }
        Ok(())
    }
}
