//! The tuner: sockets, their connections, and the budget.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use anabranch_core::sockbuf::{self, ConfigError, ConnectionId, FlowView, Kind, ThresholdError, View};
use anabranch_core::time::{Duration, Instant};

use super::flow::Flow;
use super::group::Group;
use super::place::{Place, Socket};
use super::process::Gone;
use super::{AddError, Config};
use crate::buffers::LEAST_SEND_BUFFER;
use crate::tcp_info::TcpInfo;

/// Manages the send buffers of sockets under a budget. See the [module](super).
#[derive(Debug)]
pub struct Tuner {
    config: Config,
    core: sockbuf::Tuner,
    groups: BTreeMap<ConnectionId, Group>,
    next: u32,
    counters: Counters,
}

/// Event counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Sockets that their owner dropped without removing them from the tuner.
    pub dropped: u64,
    /// Sockets whose connection was closed.
    pub closed: u64,
    /// Sockets for which the kernel returned an error on reading or setting.
    pub unreadable: u64,
    /// Reports that were negative, above 10^15 bit/s or not a number, and reports for unknown
    /// connections or sockets.
    pub bad_reports: u64,
    /// Sockets that were added while the others had not drained enough to free the overrun of one
    /// more.
    pub early: u64,
    /// Number of times that a limit could not grow as decided, because other queues had not
    /// drained.
    pub withheld: u64,
    /// Counters of the pool.
    pub pool: sockbuf::Counters,
}

/// Memory of all sockets in bytes of kernel memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Upper bound: limits, plus [`Config::overrun`] for each socket.
    pub limits: u64,
    /// Memory in use: `sk_wmem_queued`.
    pub queued: u64,
    /// Number of sockets.
    pub sockets: u64,
}

/// Last known state of a socket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowState {
    /// Its connection.
    pub connection: ConnectionId,
    /// Its number in the connection, counted from 0 in the order of addition.
    pub number: u32,
    /// Limit of its queue in bytes of kernel memory.
    pub limit: u64,
    /// Bytes of kernel memory in the queue.
    pub queued: u64,
    /// Reported or measured bandwidth in bit/s of payload.
    pub bandwidth: Option<f64>,
    /// The kernel's statistics.
    pub info: TcpInfo,
}

impl Tuner {
    /// Creates a tuner without sockets.
    ///
    /// # Errors
    /// A value of the pool's configuration is out of range.
    pub fn new(now: Instant, config: Config) -> Result<Self, ConfigError> {
        let core = sockbuf::Tuner::new(now, config.pool)?;
        let (groups, counters) = (BTreeMap::new(), Counters::default());
        Ok(Self { config, core, groups, next: 0, counters })
    }

    /// Adds a socket as a connection of its own. Its send buffer shrinks at once, and grows as the
    /// policy decides.
    ///
    /// # Errors
    /// See [`AddError`]; the socket is not added then.
    pub fn add<S: Socket + 'static>(&mut self, socket: &Arc<S>) -> Result<ConnectionId, AddError> {
        self.open(Kind::Single, &[Place::here(socket)])
    }

    /// Adds sockets that carry one connection together and share its memory. Their numbers are
    /// their indices.
    ///
    /// # Errors
    /// See [`AddError`]; no socket is added then.
    pub fn add_striped<S: Socket + 'static>(&mut self, sockets: &[Arc<S>]) -> Result<ConnectionId, AddError> {
        self.open(Kind::Striped, &sockets.iter().map(Place::here).collect::<Vec<_>>())
    }

    /// Adds a socket to an existing connection and returns its number.
    ///
    /// # Errors
    /// See [`AddError`]; the socket is not added then.
    pub fn attach<S: Socket + 'static>(
        &mut self,
        id: ConnectionId,
        socket: &Arc<S>,
    ) -> Result<u32, AddError> {
        self.join(id, &Place::here(socket))
    }

    pub(super) fn join(&mut self, id: ConnectionId, place: &Place) -> Result<u32, AddError> {
        if !self.groups.contains_key(&id) {
            return Err(AddError::Unknown(id));
        }
        self.new_only(slice::from_ref(place))?;
        let mut flow = Flow::new(0, place, self.overrun())?;
        self.reserve(1, flow.segment())?;
        if let Err(error) = flow.begin() {
            self.release();
            return Err(error.into());
        }
        self.note_early(1);
        let Some(group) = self.groups.get_mut(&id) else {
            // The last of its sockets has just been removed.
            self.release();
            return Err(AddError::Unknown(id));
        };
        let number = group.next;
        group.next += 1;
        flow.number = number;
        group.flows.push(flow);
        self.release();
        self.apply();
        Ok(number)
    }

    /// Removes the sockets of a connection. Their limits stay as they are.
    pub fn remove(&mut self, id: ConnectionId) {
        self.groups.remove(&id);
        self.core.close(id);
        self.release();
    }

    /// Changes the budget. A smaller one is met as soon as queues have drained.
    ///
    /// # Errors
    /// The sockets need more; the budget stays as it is.
    pub fn set_budget(&mut self, budget: u64) -> Result<(), AddError> {
        let needed = self.needed(0, 0);
        if needed > budget {
            return Err(AddError::Full { needed, budget });
        }
        self.config.pool.threshold = budget;
        self.release();
        Ok(())
    }

    /// Reports the bandwidth of a socket's interface in bit/s, which is used from then on. An
    /// invalid value is ignored and counted, and the last report stays in effect.
    pub fn report(&mut self, id: ConnectionId, number: u32, bandwidth: f64) {
        let flows = self.groups.get_mut(&id).map(|group| group.flows.iter_mut());
        let flow = flows.into_iter().flatten().find(|flow| flow.number == number);
        match flow {
            Some(flow) if (0.0..=MOST_BANDWIDTH).contains(&bandwidth) => flow.reported = Some(bandwidth),
            _ => self.counters.bad_reports += 1,
        }
    }

    /// Reads all sockets, runs the policy if it is due, and adjusts limits as far as memory is
    /// free.
    pub fn step(&mut self, now: Instant) {
        self.each(Flow::look);
        if self.core.next_timeout().is_some_and(|due| due <= now) {
            self.groups.values_mut().flat_map(|group| &mut group.flows).for_each(|flow| flow.measure(now));
        }
        let flows: Vec<Vec<FlowView>> = self.groups.values().map(Group::views).collect();
        let views: Vec<View<'_>> = self
            .groups
            .iter()
            .zip(&flows)
            .map(|((id, group), flows)| View {
                id: *id,
                occupied: group.flows.iter().map(Flow::occupied).sum(),
                acknowledged: group.flows.iter().map(Flow::acknowledged).sum(),
                flows,
            })
            .collect();
        self.core.handle_views(now, &views);
        self.apply();
    }

    /// When to call [`Tuner::step`] next; `None` while there are no sockets.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let look = Duration::from_nanos(self.config.look.as_nanos().max(LEAST_LOOK));
        self.core.next_timeout().map(|due| due.min(now + look))
    }

    /// Memory as of the last reading.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (_, flow) in self.all() {
            totals.limits += flow.memory.send_buffer + self.overrun();
            totals.queued += flow.memory.queued;
            totals.sockets += 1;
        }
        totals
    }

    /// All sockets as of the last reading.
    pub fn flows(&self) -> impl Iterator<Item = FlowState> {
        self.all().map(|(id, flow)| flow.state(id))
    }

    /// Connections and the sizes that the policy decided.
    pub fn connections(&self) -> &[sockbuf::Connection] {
        self.core.connections()
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        Counters { pool: self.core.counters(), ..self.counters }
    }

    fn overrun(&self) -> u64 {
        u64::from(self.config.overrun)
    }

    /// Memory of each socket outside the pool.
    fn own(&self) -> u64 {
        self.overrun() + LEAST_SEND_BUFFER
    }

    fn sockets(&self) -> u64 {
        self.groups.values().map(|group| group.flows.len() as u64).sum()
    }

    pub(super) fn open(&mut self, kind: Kind, places: &[Place]) -> Result<ConnectionId, AddError> {
        if places.is_empty() {
            return Err(AddError::NoSocket);
        }
        self.new_only(places)?;
        let (overrun, number) = (self.overrun(), places.len() as u64);
        let flows = (0..).zip(places).map(|(number, place)| Flow::new(number, place, overrun));
        let mut group = Group { flows: flows.collect::<Result<_, _>>()?, next: places.len() as u32 };
        let (id, floor) = (ConnectionId(self.next), group.floor());
        self.reserve(number, floor)?;
        if self.core.open(id, kind, u32::try_from(floor).unwrap_or(u32::MAX)).is_err() {
            self.release();
            let (needed, budget) = (self.needed(number, floor), self.config.pool.threshold);
            return Err(AddError::Full { needed, budget });
        }
        if let Err(error) = group.flows.iter_mut().try_for_each(Flow::begin) {
            self.core.close(id);
            self.release();
            return Err(error.into());
        }
        self.note_early(number);
        self.next += 1;
        self.groups.insert(id, group);
        // Other sockets may have been removed meanwhile.
        self.release();
        self.apply();
        Ok(id)
    }

    /// Checks that no socket was added before or is passed twice.
    fn new_only(&self, places: &[Place]) -> Result<(), AddError> {
        let twice = |i: usize| places[..i].iter().any(|before| before.is(&places[i]));
        let here = |place: &Place| self.all().any(|(_, flow)| flow.place.is(place));
        if places.iter().any(here) || (1..places.len()).any(twice) { Err(AddError::Held) } else { Ok(()) }
    }

    /// Counts new sockets for whose own share there is no room yet.
    fn note_early(&mut self, more: u64) {
        self.each(Flow::weigh);
        let (own, budget) = (self.own(), self.config.pool.threshold);
        let held: u64 = self.all().map(|(_, flow)| flow.holds() + own).sum();
        self.counters.early += if held + more * own > budget { more } else { 0 };
    }

    /// Memory that all sockets need at least, with `more` sockets of a connection added.
    fn needed(&self, more: u64, floor: u64) -> u64 {
        let floors: u64 = self.groups.values().map(Group::floor).sum();
        (self.sockets() + more) * self.own() + floors + floor
    }

    /// Takes the own share of `more` sockets out of the pool.
    fn reserve(&mut self, more: u64, floor: u64) -> Result<(), AddError> {
        let (needed, budget) = (self.needed(more, floor), self.config.pool.threshold);
        if needed > budget {
            return Err(AddError::Full { needed, budget });
        }
        let pool = budget - (self.sockets() + more) * self.own();
        self.core.set_threshold(pool).map_err(|error| match error {
            // Segments have grown since the connections were opened.
            ThresholdError::Small { needed, .. } => AddError::Full { needed: budget - pool + needed, budget },
            _ => AddError::Full { needed, budget },
        })
    }

    /// Returns the memory of removed sockets to the pool.
    fn release(&mut self) {
        let pool = self.config.pool.threshold.saturating_sub(self.sockets() * self.own());
        // This cannot fail: there was room for all present sockets when they were added.
        let _ = self.core.set_threshold(pool);
    }

    /// Applies `act` to each socket. Removes sockets for which it fails, and connections without
    /// sockets.
    fn each(&mut self, mut act: impl FnMut(&mut Flow) -> Result<(), Gone>) {
        let counters = &mut self.counters;
        let before: usize = self.groups.values().map(|group| group.flows.len()).sum();
        for group in self.groups.values_mut() {
            group.flows.retain_mut(|flow| match act(flow) {
                Ok(()) => true,
                Err(gone) => {
                    *match gone {
                        Gone::Dropped => &mut counters.dropped,
                        Gone::Closed => &mut counters.closed,
                        Gone::Unreadable => &mut counters.unreadable,
                    } += 1;
                    false
                }
            });
        }
        if self.sockets() == before as u64 {
            return;
        }
        let core = &mut self.core;
        self.groups.retain(|id, group| {
            if group.flows.is_empty() {
                core.close(*id);
            }
            !group.flows.is_empty()
        });
        self.release();
    }

    /// Applies the decided sizes: first limits that shrink, then limits that grow, as far as memory
    /// is actually free.
    fn apply(&mut self) {
        // The assignments themselves are not needed: the decided sizes are in the core's
        // connections, and this tuner applies them per socket.
        while self.core.poll_assignment().is_some() {}
        let sizes = self.sizes();
        let shrink = |flow: &mut Flow, size| if size < flow.limit() { flow.set(size) } else { Ok(()) };
        // An owner may have filled a queue until its limit was set, so queues are read afterwards.
        // If a socket is removed here, the sizes no longer match the sockets, and the next step
        // computes new ones.
        if !self.each_with(&sizes, shrink)
            || !self.grows(&sizes)
            || !self.each_with(&sizes, |flow, _| flow.weigh())
        {
            return;
        }
        let pool = self.config.pool.threshold.saturating_sub(self.sockets() * self.own());
        let held: u64 = self.all().map(|(_, flow)| flow.holds()).sum();
        let (mut room, mut withheld) = (pool.saturating_sub(held), 0);
        self.each_with(&sizes, |flow, size| {
            if size <= flow.limit() {
                return Ok(());
            }
            // The socket already holds what is in its own queue.
            let holds = flow.holds();
            let given = size.min(even(holds.saturating_add(room)));
            withheld += u64::from(given < size);
            if given > flow.limit() {
                flow.set(given)?;
                room = room.saturating_sub(flow.holds().saturating_sub(holds));
            }
            Ok(())
        });
        self.counters.withheld += withheld;
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (ConnectionId, &Flow)> {
        self.groups.iter().flat_map(|(id, group)| group.flows.iter().map(|flow| (*id, flow)))
    }

    fn grows(&self, sizes: &[u64]) -> bool {
        self.all().zip(sizes).any(|((_, flow), size)| *size > flow.limit())
    }

    /// As [`Tuner::each`], with the size of each socket. Returns false if sockets were removed.
    fn each_with(&mut self, sizes: &[u64], mut act: impl FnMut(&mut Flow, u64) -> Result<(), Gone>) -> bool {
        let mut next = sizes.iter().copied();
        self.each(|flow| next.next().map_or(Ok(()), |size| act(flow, size)));
        self.sockets() == sizes.len() as u64
    }

    /// Share of the pool of each socket, in order.
    fn sizes(&self) -> Vec<u64> {
        let mut sizes = Vec::new();
        for (connection, group) in self.core.connections().iter().zip(self.groups.values()) {
            // The core lets a limit stay above its target while more is in the queue. The kernel
            // keeps queued bytes in any case, and would forever accept more up to that limit.
            let size = connection.target.min(connection.limit);
            sizes.extend(group.divide(size).into_iter().map(even));
        }
        sizes
    }
}

impl Flow {
    pub(super) fn state(&self, connection: ConnectionId) -> FlowState {
        FlowState {
            connection,
            number: self.number,
            limit: self.memory.send_buffer,
            queued: self.memory.queued,
            bandwidth: self.bandwidth(),
            info: self.info,
        }
    }
}

/// The kernel's sizes are even.
fn even(octets: u64) -> u64 {
    octets & !1
}

/// Largest bandwidth that the core accepts, in bit/s.
const MOST_BANDWIDTH: f64 = 1e15;
/// One millisecond: a busy loop would not help.
const LEAST_LOOK: u64 = 1_000_000;
