//! Route errors: broken links and lost routes (RFC 3561 sections 6.11 and 6.12).

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use anabranch_wire::aodv::{Message, RouteError, Unreachable};

use super::{Event, LocalRepair, Router, SequenceNumber, To, Undelivered};
use crate::time::Instant;

impl Router {
    /// Handles the loss of a neighbour that the link layer reports; `undelivered` is the data
    /// packet that could not be delivered, if any (section 6.11 case i). With [`LocalRepair::On`],
    /// a local repair starts if the packet belongs to another node; its owner then calls
    /// [`Router::forward`] again.
    pub fn handle_link_break(&mut self, now: Instant, neighbour: Ipv4Addr, undelivered: Option<Undelivered>) {
        self.tick(now);
        self.acks.remove(&neighbour);
        self.watched.remove(&neighbour);
        let mut lost = self.table.through(neighbour);
        let repaired = undelivered.filter(|packet| self.may_repair(&lost, packet));
        let forget_at = now + self.config.delete_period;
        let mut unreachable = Vec::with_capacity(lost.len());
        for &destination in &lost {
            let sequence = self.table.end(destination, None, forget_at).unwrap_or_default();
            if repaired.is_none_or(|packet| packet.destination != destination) {
                unreachable.push(Unreachable { destination, sequence });
            }
        }
        if let Some(packet) = repaired {
            lost.retain(|destination| *destination != packet.destination);
            self.repair(now, packet.destination, packet.source);
        }
        self.report(now, unreachable, Some(neighbour));
        self.tell_broken(lost);
    }

    /// Section 6.12: only for a packet of another node, to a destination that was near.
    fn may_repair(&self, lost: &[Ipv4Addr], packet: &Undelivered) -> bool {
        let near = |destination| {
            self.table.get(destination).is_some_and(|entry| entry.hops <= self.config.max_repair_ttl)
        };
        self.config.local_repair == LocalRepair::On
            && self.quiet_until.is_none()
            && packet.source != self.address
            && lost.contains(&packet.destination)
            && near(packet.destination)
    }

    fn tell_broken(&mut self, destinations: Vec<Ipv4Addr>) {
        if !destinations.is_empty() {
            self.events.push_back(Event::Broken { destinations });
        }
    }

    /// Answers a packet of a neighbour for which there is no route with a route error (section 6.11
    /// case ii), also after a reboot (6.13).
    pub(super) fn refuse_packet(&mut self, now: Instant, destination: Ipv4Addr, previous: Ipv4Addr) {
        let forget_at = now + self.config.delete_period;
        let sequence = match &mut self.quiet_until {
            Some(until) => {
                // Section 6.13: each data packet that arrives at a rebooted node restarts its
                // DELETE_PERIOD wait. The sequence numbers from before the reboot are unknown.
                *until = forget_at;
                None
            }
            None => self.table.get(destination).and_then(|entry| entry.sequence),
        };
        self.table.remember(destination, forget_at);
        let sequence = sequence.unwrap_or(UNKNOWN);
        let unreachable = vec![Unreachable { destination, sequence }];
        self.send_error_to(now, To::Neighbour(previous), RouteError { no_delete: false, unreachable });
    }

    /// Handles a route error (section 6.11 case iii).
    pub(super) fn handle_error(&mut self, now: Instant, from: Ipv4Addr, error: &RouteError) {
        let forget_at = now + self.config.delete_period;
        let mut lost = Vec::new();
        let mut unreachable = Vec::new();
        for said in &error.unreachable {
            let through = self.table.valid(said.destination).is_some_and(|entry| entry.next_hop == from);
            if !through {
                continue;
            }
            // The N flag marks a local repair upstream: the route stays in use, and only the notice
            // is forwarded.
            if error.no_delete {
                unreachable.push(*said);
                continue;
            }
            let number = Some(said.sequence).filter(|number| *number != UNKNOWN);
            let sequence = self.table.end(said.destination, number, forget_at).unwrap_or(UNKNOWN);
            unreachable.push(Unreachable { sequence, ..*said });
            lost.push(said.destination);
        }
        if error.no_delete {
            if !unreachable.is_empty() {
                self.send_error(now, RouteError { no_delete: true, unreachable }, Some(from));
            }
            return;
        }
        self.report(now, unreachable, Some(from));
        self.tell_broken(lost);
    }

    /// Sends a route error to the precursors of these destinations, `except` one. Clears the
    /// precursor lists that were served, since those nodes no longer use the routes.
    pub(super) fn report(&mut self, now: Instant, unreachable: Vec<Unreachable>, except: Option<Ipv4Addr>) {
        for part in unreachable.chunks(MOST) {
            if self.send_error(now, RouteError { no_delete: false, unreachable: part.to_vec() }, except) {
                for told in part {
                    if let Some(entry) = self.table.get_mut(told.destination) {
                        entry.precursors.clear();
                    }
                }
            }
        }
    }

    /// Sends a route error to the precursors of its routes; routes without precursors are left out.
    /// Returns false if there was no precursor, or if the rate limit suppressed the error.
    pub(super) fn send_error(
        &mut self,
        now: Instant,
        mut error: RouteError,
        except: Option<Ipv4Addr>,
    ) -> bool {
        let precursors = |destination: Ipv4Addr| {
            let list = self.table.get(destination).map_or(&[][..], |entry| &entry.precursors);
            list.iter().copied().filter(move |node| Some(*node) != except)
        };
        error.unreachable.retain(|told| precursors(told.destination).next().is_some());
        let listeners: BTreeSet<Ipv4Addr> =
            error.unreachable.iter().flat_map(|told| precursors(told.destination)).collect();
        let to = match (listeners.first(), listeners.len()) {
            (None, _) => return false,
            (Some(only), 1) => To::Neighbour(*only),
            (Some(_), _) => To::Broadcast,
        };
        self.send_error_to(now, to, error)
    }

    fn send_error_to(&mut self, now: Instant, to: To, error: RouteError) -> bool {
        if self.error_limit.take(now).is_err() {
            self.counters.errors_suppressed += 1;
            return false;
        }
        self.counters.errors += 1;
        self.send(now, to, 1, &Message::Error(error));
        true
    }
}

/// The sequence number in a route error for a destination whose number is unknown.
const UNKNOWN: SequenceNumber = SequenceNumber(0);

/// Largest number of destinations in one route error: it then fits into the 576 bytes that every
/// host must accept.
const MOST: usize = 64;
