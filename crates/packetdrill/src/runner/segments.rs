//! Handles arriving segments, and compares segments that must leave.

use std::fmt::Write;

use anabranch_core::segment::{Flags, SeqNumber};
use anabranch_core::time::Instant;

use super::mapping::{Mapping, Seen};
use super::multipath::joins;
use super::{PATIENCE, Runner, When, seconds};
use crate::host::Sent;
use crate::outcome::{Step, Stop};
use crate::script::{Packet, TcpOption};

impl Runner<'_> {
    /// Delivers a packet of the script.
    pub(super) fn inbound(&mut self, line: usize, packet: &Packet) -> Step {
        let (local, remote) = self.ends_of(packet);
        let flow = if local.is_some() || remote.is_some() {
            self.host.find_flow(|flow| {
                local.is_none_or(|local| local == flow.addresses.0)
                    && remote.is_none_or(|remote| remote == flow.addresses.1)
            })
        } else {
            match packet.ports {
                Some((from, to)) => self.host.find((to, from)),
                None => self.host.current,
            }
        };
        let settings = &self.host.settings;
        let addresses =
            (local.unwrap_or_else(|| settings.local()), remote.unwrap_or_else(|| settings.remote()));
        if joins(packet) {
            let iss = self.host.next_iss(None);
            let mut mapping = Mapping::new(iss, self.mappings.len());
            let mut segment = mapping.inbound(packet);
            segment.mptcp = self.multipath_in(line, packet, None)?;
            let flow = self.host.accept_join(segment, addresses, iss);
            if self.host.link(flow).is_none() {
                mapping.refused();
            }
            self.mappings.insert(flow, mapping);
            return Ok(());
        }
        let alive = flow.filter(|flow| self.host.link(*flow).is_some_and(|link| !link.is_closed()));
        let opens = packet.flags.contains(Flags::SYN) && !packet.flags.contains(Flags::ACK);
        let least = alive.filter(|_| opens).and_then(|flow| {
            let syn = self.mapping(flow).later_syn(packet);
            self.host.gives_way(flow, &syn)
        });
        if opens && (alive.is_none() || least.is_some()) {
            let iss = self.host.next_iss(least);
            let mut mapping = Mapping::new(iss, self.mappings.len());
            let mut segment = mapping.inbound(packet);
            segment.mptcp = self.multipath_in(line, packet, None)?;
            let port = packet.ports.map(|(_, to)| to);
            return match self.host.open(segment, port, addresses, iss) {
                Some(flow) => {
                    self.mappings.insert(flow, mapping);
                    Ok(())
                }
                None => Err(Stop::failed(line, "no socket listens for this SYN")),
            };
        }
        let Some(flow) = flow else {
            return Err(Stop::invalid(line, "this packet belongs to no connection"));
        };
        let mut segment = self.mapping(flow).inbound(packet);
        segment.mptcp = self.multipath_in(line, packet, Some(flow))?;
        self.host.receive(flow, segment);
        Ok(())
    }

    fn mapping(&mut self, flow: usize) -> &mut Mapping {
        let iss = self.host.flow(flow).map_or(SeqNumber(0), |flow| flow.iss);
        self.mappings.entry(flow).or_insert_with(|| Mapping::new(iss, flow))
    }

    /// Checks that a segment leaves, or several that together form the packet of the script.
    pub(super) fn outbound(&mut self, line: usize, packet: &Packet, when: When) -> Step {
        let limit =
            if when.any { when.to + PATIENCE * 1800 } else { when.to + self.tolerance(when.to) + PATIENCE };
        let (mut len, mut last) = (0, None);
        loop {
            let Some(sent) = self.next_sent(packet, limit)? else {
                let expected = describe(packet);
                let message = if last.is_some() {
                    format!("expected {expected}, got only {len} bytes of it by {}", seconds(self.host.now()))
                } else {
                    format!("expected {expected} at {}, got nothing", seconds(when.from))
                };
                return Err(Stop::failed(line, message));
            };
            self.mapping(sent.flow).learn(packet, &sent.segment);
            self.learn_names(packet, &sent.segment);
            if joins(packet) {
                self.host.current = Some(sent.flow);
            }
            let seen = self.mapping(sent.flow).outbound(&sent.segment);
            let whole = len + sent.segment.payload.len() as u32 >= packet.len;
            if let Err(difference) = self.compare(packet, &sent, &seen, len, whole) {
                let rest =
                    if len > 0 { format!("{} bytes more of ", packet.len - len) } else { String::new() };
                let message = format!(
                    "expected {rest}{} at {}, got {} at {}: {difference}",
                    describe(packet),
                    seconds(when.from),
                    self.describe_sent(&sent, &seen),
                    seconds(sent.at),
                );
                return Err(Stop::failed(line, message));
            }
            len += sent.segment.payload.len() as u32;
            let at = sent.at;
            last = Some(at);
            if whole || self.host.settings.strict_segments {
                return self.check_time(line, packet, at, when);
            }
        }
    }

    /// Returns the next segment that leaves by `limit`: of Multipath TCP the next on the flow of
    /// the packet, since segments of several subflows have no order.
    fn next_sent(&mut self, packet: &Packet, limit: Instant) -> Step<Option<Sent>> {
        loop {
            for i in 0..self.host.sent.len() {
                let flow = self.host.sent[i].flow;
                let multi = self.host.link(flow).is_some_and(|link| link.connection.multi().is_some());
                if !multi || self.may_be_on(packet, flow) {
                    return Ok(self.host.sent.remove(i));
                }
            }
            if !self.step(limit)? {
                return Ok(self.host.sent.pop_front());
            }
        }
    }

    fn check_time(&self, line: usize, packet: &Packet, at: Instant, when: When) -> Step {
        let tolerance = self.tolerance(when.from);
        if when.any || (at + tolerance >= when.from && at <= when.to + tolerance) {
            return Ok(());
        }
        let range = if when.from == when.to {
            seconds(when.from)
        } else {
            format!("{} to {}", seconds(when.from), seconds(when.to))
        };
        let message = format!("expected {} at {range}, it left at {}", describe(packet), seconds(at));
        Err(Stop::failed(line, message))
    }

    /// Compares one segment. `before` bytes of the packet have left already; `whole` means that
    /// this segment ends the packet.
    fn compare(
        &self,
        packet: &Packet,
        sent: &Sent,
        seen: &Seen,
        before: u32,
        whole: bool,
    ) -> Result<(), String> {
        let segment = &sent.segment;
        let len = segment.payload.len() as u32;
        let named = packet.ports.is_some() || packet.addresses.iter().any(Option::is_some);
        if self.host.current.is_some_and(|current| current != sent.flow) && !named {
            return Err("it belongs to another connection".to_owned());
        }
        for (flag, name) in FLAGS {
            // If a packet is sent in several segments, FIN is in the last one and CWR in the first
            // one.
            let here = match flag {
                Flags::FIN => whole,
                Flags::CWR => before == 0,
                _ => true,
            };
            let wanted = packet.flags.contains(flag) && here;
            if wanted != segment.flags.contains(flag) {
                return Err(format!("{name} differs"));
            }
        }
        // PSH is required at the end of the written data (RFC 9293 section 3.9.1.2). If more data
        // waits, it is optional, and Linux sets it depending on how it builds its buffers.
        let push = segment.flags.contains(Flags::PSH);
        if packet.flags.contains(Flags::PSH)
            && !push
            && sent.ends_queue
            && len > 0
            && !packet.flags.contains(Flags::FIN)
        {
            return Err("PSH is missing".to_owned());
        }
        if push && !sent.ends_queue {
            return Err("PSH although more was written".to_owned());
        }
        if seen.seq != packet.seq.wrapping_add(before) {
            return Err("the sequence number differs".to_owned());
        }
        if before + len > packet.len || (self.host.settings.strict_segments && len != packet.len) {
            return Err("the length differs".to_owned());
        }
        if len == 0 && packet.len > 0 {
            return Err("it carries no data".to_owned());
        }
        if packet.flags.contains(Flags::ACK) && seen.ack != packet.ack {
            return Err("the acknowledgement number differs".to_owned());
        }
        if packet.window.is_some_and(|window| window != segment.window) {
            return Err("the window differs".to_owned());
        }
        if packet.ecn.is_some_and(|wanted| !wanted.admits(segment.ecn)) {
            return Err(format!("the ECN field differs: {:?}", segment.ecn));
        }
        self.compare_options(packet, sent, seen)?;
        if packet.options.is_none() { Ok(()) } else { self.compare_multipath(packet, sent, (before, whole)) }
    }

    /// Compares options as a set; the position of padding is ignored.
    fn compare_options(&self, packet: &Packet, sent: &Sent, seen: &Seen) -> Result<(), String> {
        let Some(wanted) = &packet.options else { return Ok(()) };
        let ours = &sent.segment.options;
        let (mut mss, mut scale, mut permitted, mut stamps, mut sack) = (None, None, false, None, Vec::new());
        for option in wanted {
            match option {
                TcpOption::Padding | TcpOption::Multipath(_) => {}
                TcpOption::Mss(value) => mss = Some(*value),
                TcpOption::WindowScale(shift) => scale = Some(*shift),
                TcpOption::SackPermitted => permitted = true,
                TcpOption::Timestamps(value, echo) => stamps = Some((*value, *echo)),
                TcpOption::Sack(blocks) => sack.clone_from(blocks),
            }
        }
        let differs = |what: &str| Err(format!("the option {what} differs"));
        if ours.mss != mss {
            return differs("mss");
        }
        if ours.window_scale != scale {
            return differs("wscale");
        }
        if ours.sack_permitted != permitted {
            return differs("sackOK");
        }
        if seen.sack != sack {
            return differs("sack");
        }
        match (ours.timestamps, stamps) {
            (None, None) => Ok(()),
            (Some(ours), Some((value, echo))) => {
                let multi = self.host.link(sent.flow).is_some_and(|link| link.connection.multi().is_some());
                if ours.echo != echo && !multi {
                    return differs("TS ecr");
                }
                let Some(tick) = self.host.settings.timestamp_tick else { return Ok(()) };
                let mapping = self.mappings.get(&sent.flow);
                let got = mapping.map_or(ours.value, |mapping| mapping.timestamp(ours.value));
                let off = u64::from(got.abs_diff(value)).saturating_mul(tick.as_nanos());
                if off > self.tolerance(sent.at).as_nanos() { differs("TS val") } else { Ok(()) }
            }
            _ => differs("TS"),
        }
    }

    /// Formats a segment of ours in the notation of scripts.
    fn describe_sent(&self, sent: &Sent, seen: &Seen) -> String {
        let segment = &sent.segment;
        let ours = &segment.options;
        let mut options = Vec::new();
        options.extend(ours.mss.map(TcpOption::Mss));
        options.extend(ours.sack_permitted.then_some(TcpOption::SackPermitted));
        options.extend(ours.timestamps.map(|stamps| {
            let mapping = self.mappings.get(&sent.flow);
            let value = mapping.map_or(stamps.value, |mapping| mapping.timestamp(stamps.value));
            TcpOption::Timestamps(value, stamps.echo)
        }));
        options.extend(ours.window_scale.map(TcpOption::WindowScale));
        if !seen.sack.is_empty() {
            options.push(TcpOption::Sack(seen.sack.clone()));
        }
        let packet = describe(&Packet {
            ecn: None,
            flags: segment.flags,
            seq: seen.seq,
            len: segment.payload.len() as u32,
            ack: seen.ack,
            window: Some(segment.window),
            options: Some(options),
            ports: None,
            addresses: [None, None],
        });
        if segment.mptcp.is_empty() { packet } else { format!("{packet} with {:?}", segment.mptcp) }
    }
}

/// The flags that must match the script.
const FLAGS: [(Flags, &str); 6] = [
    (Flags::SYN, "SYN"),
    (Flags::RST, "RST"),
    (Flags::ACK, "ACK"),
    (Flags::FIN, "FIN"),
    (Flags::ECE, "ECE"),
    (Flags::CWR, "CWR"),
];

/// Formats a packet in the notation of scripts.
fn describe(packet: &Packet) -> String {
    let mut out = String::new();
    let flags = format!("{:?}", packet.flags);
    let flags = if flags.is_empty() { "-" } else { &flags };
    let end = packet.seq.wrapping_add(packet.len);
    // Writing to a String cannot fail.
    let _ = write!(out, "`> {flags} {}:{end}({})", packet.seq, packet.len);
    if packet.flags.contains(Flags::ACK) {
        let _ = write!(out, " ack {}", packet.ack);
    }
    if let Some(window) = packet.window {
        let _ = write!(out, " win {window}");
    }
    let options: Vec<String> = packet.options.iter().flatten().filter_map(describe_option).collect();
    if packet.options.is_none() {
        out.push_str(" <...>");
    } else if !options.is_empty() {
        let _ = write!(out, " <{}>", options.join(","));
    }
    out.push('`');
    out
}

fn describe_option(option: &TcpOption) -> Option<String> {
    Some(match option {
        TcpOption::Padding => return None,
        TcpOption::Multipath(option) => format!("{option:?}"),
        TcpOption::Mss(mss) => format!("mss {mss}"),
        TcpOption::WindowScale(shift) => format!("wscale {shift}"),
        TcpOption::SackPermitted => "sackOK".to_owned(),
        TcpOption::Timestamps(value, echo) => format!("TS val {value} ecr {echo}"),
        TcpOption::Sack(blocks) => {
            let blocks: Vec<String> =
                blocks.iter().map(|block| format!("{}:{}", block.left, block.right)).collect();
            format!("sack {}", blocks.join(" "))
        }
    })
}
