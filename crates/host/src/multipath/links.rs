//! The interfaces that are paths: which ones, and what follows from their changes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use anabranch_core::mptcp::PathId;
use anabranch_deploy::error::Error;
use anabranch_deploy::log::Entry;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};

use super::engine::Engine;
use super::stack::PathConfig;
use crate::interfaces::{self, Interface, Watch};
use crate::routes::{Routes, RoutesError, RoutesOptions};

/// The interfaces in use. Dropping this removes their devices, routes and rules.
pub(super) struct Links<'a> {
    engine: Rc<Engine>,
    /// Names of all interfaces that were ever in use.
    names: &'a RefCell<BTreeMap<PathId, String>>,
    /// Names of the interfaces to use; empty for all.
    chosen: Vec<String>,
    backup: &'a [String],
    state: RefCell<State>,
}

struct State {
    routes: Routes,
    watch: Option<Watch>,
    /// By name.
    links: BTreeMap<String, Link>,
    /// Names of the interfaces that are up and have an address, but no route.
    idle: Vec<String>,
    /// What is amiss, by name of the interface.
    amiss: BTreeMap<String, Amiss>,
}

/// A reason to warn.
struct Amiss {
    text: String,
    /// When the warning is due.
    due: Instant,
    /// Whether it was given.
    told: bool,
}

struct Link {
    id: PathId,
    interface: Interface,
    /// Addresses of the host behind the path's device.
    local: (Ipv4Addr, Option<Ipv6Addr>),
}

impl<'a> Links<'a> {
    /// Makes a path of each interface that is up.
    pub(super) fn open(
        engine: Rc<Engine>,
        names: &'a RefCell<BTreeMap<PathId, String>>,
        interfaces: &'a [String],
        backup: &'a [String],
        listen: Vec<u16>,
    ) -> Result<Self, Error> {
        // First, so that no change is missed.
        let watch = Watch::open().map_err(|e| Error::missing(format!("cannot watch interfaces: {e}")))?;
        let routes = Routes::new(RoutesOptions { listen })?;
        // A backup may be named without the others.
        let chosen = match interfaces {
            [] => Vec::new(),
            named => named.iter().chain(backup).cloned().collect(),
        };
        let state = State {
            routes,
            watch: Some(watch),
            links: BTreeMap::new(),
            idle: Vec::new(),
            amiss: BTreeMap::new(),
        };
        let state = RefCell::new(state);
        let this = Self { engine, names, chosen, backup, state };
        let there = interfaces::list().map_err(|error| error.into_error("list interfaces", ""))?;
        for name in this.chosen.iter().chain(backup).collect::<BTreeSet<_>>() {
            if !there.iter().any(|interface| interface.name == *name) {
                Entry::warning(
                    "missing",
                    format!("there is no interface {name}; it is used when it appears"),
                )
                .write();
            }
        }
        let mut failures = this.apply(there);
        if this.state.borrow().links.is_empty() {
            if !failures.is_empty() {
                return Err(failures.remove(0).1.into());
            }
            Entry::warning("no interface", "no interface is up and has an address and a route").write();
        }
        this.tell(failures);
        Ok(this)
    }

    /// Follows the changes of interfaces, forever.
    pub(super) async fn follow(&self) -> Error {
        let watch = self.state.borrow_mut().watch.take();
        let Some(mut watch) = watch else { return std::future::pending().await };
        let mut retry = None;
        loop {
            let again = retry.into_iter().chain(self.next_warning()).min();
            match timeout(again.unwrap_or(CHECK), watch.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    return Error::job(format!("the kernel reports no changes of interfaces: {error}"));
                }
                Err(_) if again.is_some() => {}
                Err(_) => {
                    self.check().await;
                    continue;
                }
            }
            let failures = match interfaces::list() {
                Ok(there) => self.apply(there),
                Err(error) => vec![(String::new(), error.into())],
            };
            // A name that is gone or a program that fails may be a matter of time.
            let again = self.tell(failures);
            retry = again.then(|| retry.map_or(RETRY, |last| CHECK.min(last * 2)));
            // Changes come in groups.
            sleep(GROUP).await;
        }
    }

    /// Warns of failures that are new, each with its interface, and of interfaces that lack routes
    /// for longer than [`GRACE`]. Returns whether to try again.
    fn tell(&self, failures: Vec<(String, RoutesError)>) -> bool {
        let again = failures.iter().any(|(_, error)| error.is_transient());
        let State { idle, links, amiss, .. } = &mut *self.state.borrow_mut();
        let usable = |name: &str| links.get(name).filter(|link| is_usable(&link.interface));
        let is_default = |name: &str| usable(name).is_some_and(|link| link.interface.is_default());
        let (at_once, later) = (Instant::now(), Instant::now() + GRACE);
        let lost =
            idle.iter().map(|name| (name.clone(), later, format!("{name} has no route, and is not used")));
        let local = links.keys().filter(|name| usable(name).is_some() && !is_default(name));
        let local = local.map(|name| {
            let text = format!("{name} has no default route, and is used for its own networks only");
            (name.clone(), later, text)
        });
        let failed =
            failures.into_iter().map(|(name, error)| (name, at_once, Error::from(error).to_string()));
        let mut old = std::mem::take(amiss);
        // A failure comes last, since it counts more.
        for (name, due, text) in lost.chain(local).chain(failed) {
            let known = old.get(&name).filter(|known| known.text == text);
            let (due, told) = known.map_or((due, false), |known| (known.due, known.told));
            amiss.insert(name, Amiss { text, due, told });
        }
        for (name, Amiss { text, told, .. }) in
            amiss.iter_mut().filter(|(_, amiss)| !amiss.told && amiss.due <= at_once)
        {
            Entry::warning("interface", text.as_str()).with("interface", name.as_str()).write();
            *told = true;
        }
        old.retain(|name, known| known.told && !amiss.contains_key(name) && is_default(name));
        for name in old.keys() {
            let entry = Entry::info("interface", format!("{name} is used for all destinations"));
            entry.with("interface", name.as_str()).write();
        }
        again
    }

    /// Time until the next warning is due.
    fn next_warning(&self) -> Option<Duration> {
        let state = self.state.borrow();
        let next = state.amiss.values().filter(|amiss| !amiss.told).map(|amiss| amiss.due).min();
        next.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Writes the rules of the packet filter anew if another program has removed them.
    async fn check(&self) {
        let inspection = self.state.borrow().routes.inspection();
        let Ok(Ok(false)) = spawn_blocking(inspection).await else { return };
        // A change of an interface may have written them meanwhile, which does no harm.
        let text = "another program has removed rules of the packet filter: they are written anew";
        Entry::warning("rules", text).write();
        if let Err(error) = self.state.borrow_mut().routes.mend() {
            Entry::warning("rules", Error::from(error).to_string()).write();
        }
    }

    /// Makes the paths those of these interfaces. Returns the failures, each with its interface:
    /// one does not stop the others.
    fn apply(&self, there: Vec<Interface>) -> Vec<(String, RoutesError)> {
        let mut failures = Vec::new();
        let mut state = self.state.borrow_mut();
        let State { routes, links, idle, .. } = &mut *state;
        let there: BTreeMap<String, Interface> = there
            .into_iter()
            .filter(|interface| self.chosen.is_empty() || self.chosen.contains(&interface.name))
            .map(|interface| (interface.name.clone(), interface))
            .collect();
        let leads_nowhere = |interface: &&Interface| interface.is_open() && interface.routes.is_empty();
        *idle = there.values().filter(leads_nowhere).map(|interface| interface.name.clone()).collect();
        // Losses first: what takes long follows.
        for link in links.values_mut() {
            let usable = there.get(&link.interface.name).is_some_and(is_usable);
            if !usable && is_usable(&link.interface) {
                self.engine.suspend(link.id);
                link.interface.up = false;
                Entry::info("lost", format!("{} is lost", link.interface.name)).write();
            }
        }
        let gone: Vec<String> = links.keys().filter(|name| !there.contains_key(*name)).cloned().collect();
        for name in gone {
            if let Some(link) = links.remove(&name) {
                self.engine.detach(link.id);
                failures.extend(routes.remove(&name).err().map(|error| (name, error)));
            }
        }
        for (name, interface) in there.into_iter().filter(|(_, interface)| is_usable(interface)) {
            match links.get_mut(&name) {
                Some(link) if link.interface == interface => {}
                Some(link) => {
                    if let Err(error) = routes.refresh(&interface) {
                        failures.push((name, error));
                        continue;
                    }
                    if !link.interface.up {
                        Entry::info("returned", format!("{name} has returned")).write();
                    }
                    link.interface = interface;
                    self.engine.change(link.id, self.config(link));
                }
                None => match self.place(routes, interface) {
                    Ok(link) => drop(links.insert(name, link)),
                    Err(error) => failures.push((name, error)),
                },
            }
        }
        failures.extend(routes.review().err().map(|error| (String::new(), error)));
        failures
    }

    /// Makes the path of an interface.
    fn place(&self, routes: &mut Routes, interface: Interface) -> Result<Link, RoutesError> {
        let path = routes.place(&interface)?;
        let mut names = self.names.borrow_mut();
        let known = names.iter().find(|(_, name)| **name == interface.name).map(|(id, _)| *id);
        let id = known.unwrap_or(PathId(names.len() as u16));
        names.insert(id, interface.name.clone());
        let link = Link { id, interface, local: (path.local_v4, path.local_v6) };
        let attached = self.engine.attach(id, path.device, self.config(&link));
        attached.map_err(|error| RoutesError::Device { name: path.name.clone(), error })?;
        Entry::info("path", format!("using {} through {}", link.interface.name, path.name)).write();
        Ok(link)
    }

    fn config(&self, Link { interface, local, .. }: &Link) -> PathConfig {
        let has = |v4| interface.addresses.iter().any(|address| address.is_ipv4() == v4);
        PathConfig {
            v4: has(true).then_some(local.0),
            v6: local.1.filter(|_| has(false)),
            mtu: interface.mtu,
            backup: self.backup.contains(&interface.name),
            announced: interface.addresses.clone(),
            destinations: interface.destinations().collect(),
        }
    }
}

/// Whether packets can leave by an interface. The kernel drops static routes when it goes down.
fn is_usable(interface: &Interface) -> bool {
    interface.is_open() && !interface.routes.is_empty()
}

/// Time without a change after which the rules of the packet filter are looked at.
const CHECK: Duration = Duration::from_secs(10);
/// Time after which a failed change is tried again; it doubles each time.
const RETRY: Duration = Duration::from_millis(500);
/// Time without a route after which an interface is warned of: a program that configures it sets
/// its state, its addresses and its routes one after the other.
const GRACE: Duration = Duration::from_secs(2);
/// Time in which further changes are expected.
const GROUP: Duration = Duration::from_millis(20);
