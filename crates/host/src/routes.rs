//! A TUN device for each interface, and the routes, rules and translation of addresses that bring
//! its packets to the network through that interface.
//!
//! | what | identified by |
//! | --- | --- |
//! | TUN devices, which end with the process | the alias `anabranch-multipath` |
//! | rules of priority 4710, which lead packets from and to the TUN's host to a table | protocol 171 |
//! | tables from 43776 on, with the routes of an interface | protocol 171 |
//! | chains in the tables `filter` and `nat` of the packet filter | names with `anabranch-multipath` |
//! | former values of kernel parameters, as comments in the chain in `filter` | its name |
//!
//! [`Routes::tear_down`] finds all of them without a file, unless the chain was emptied: the file of
//! the lock has a copy of the former values. Addresses of the TUNs' hosts never leave
//! this host, because the packet filter translates them to those of the interface.

mod device;
mod parameters;
mod pool;

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::panic::resume_unwind;
use std::path::{Path as FilePath, PathBuf};
use std::thread;
use std::time::Duration;

use anabranch_deploy::error::Error;
use anabranch_deploy::log::Entry;
use rustix::fs::OFlags;
use rustix::io::{FdFlags, fcntl_setfd};
use tun_rs::SyncDevice;

use self::parameters::Parameters;
use self::pool::Pool;
use crate::chains::{self, Chain, Place};
use crate::commands::{CommandError, Family, PRIVILEGES, run};
use crate::interfaces::{Interface, Route, routes_of};

/// What is made beside the routes.
#[derive(Clone, Default, Debug)]
pub struct RoutesOptions {
    /// TCP ports of the interfaces' addresses whose connections go to the TUNs' hosts.
    pub listen: Vec<u16>,
}

/// The device of a path. Its routes and rules are those of [`Routes`].
pub struct Path {
    /// The TUN device, non-blocking. The device ends when this is dropped.
    pub device: SyncDevice,
    /// Name of the device.
    pub name: String,
    /// Largest IP packet in bytes: that of the interface.
    pub mtu: u32,
    /// Address of the host behind the device.
    pub local_v4: Ipv4Addr,
    /// Address of the host behind the device; `None` if the kernel cannot translate IPv6.
    pub local_v6: Option<Ipv6Addr>,
}

/// The paths of this network namespace. Dropping this removes all that was made for them.
#[derive(Debug)]
pub struct Routes {
    options: RoutesOptions,
    pool: Pool,
    paths: BTreeMap<String, Placed>,
    parameters: Parameters,
    /// The rules that were last written into the chains.
    written: BTreeMap<(Family, Chain<'static>), Vec<String>>,
    /// Held as long as this process may change something. Its content is a copy of the former
    /// values, for the time when another program has emptied the chains.
    lock: File,
    /// Held as long as this process lives.
    _owner: File,
}

/// A path that is in place, under the name of its interface.
#[derive(Debug)]
struct Placed {
    /// Name of the TUN device.
    tun: String,
    /// Index of the interface, which it keeps when it is renamed.
    index: u32,
    mtu: u32,
    table: String,
    v4: Ipv4Addr,
    v6: Option<Ipv6Addr>,
}

/// Why routes and rules could not be changed.
#[derive(Debug)]
pub enum RoutesError {
    /// Another process has paths in this network namespace.
    Running,
    /// The file that keeps other processes away cannot be used.
    Lock {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The name of the interface has characters that rules cannot have.
    Name(String),
    /// A device cannot be made.
    Device {
        /// Its name.
        name: String,
        /// The reason.
        error: io::Error,
    },
    /// No addresses or tables are left.
    Full,
    /// A parameter of the kernel cannot be changed.
    Parameter {
        /// Its file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A program is missing or fails.
    Command(CommandError),
}

impl Routes {
    /// Claims this network namespace, and removes what a killed process has left in it.
    ///
    /// # Errors
    /// [`RoutesError::Running`]: another process has done so. A program is missing or fails.
    pub fn new(options: RoutesOptions) -> Result<Self, RoutesError> {
        let (lock, owner) = lock()?;
        clear(left(&lock)?, &lock)?;
        let (pool, paths, written) = (Pool::find()?, BTreeMap::new(), BTreeMap::new());
        Ok(Self { options, pool, paths, parameters: Parameters::default(), written, lock, _owner: owner })
    }

    /// Makes the device of a path, and what leads its packets through the interface. If the path is
    /// there, it is made anew.
    ///
    /// # Errors
    /// A privilege, a program or a module of the kernel is missing. Then nothing of the path
    /// remains.
    pub fn place(&mut self, interface: &Interface) -> Result<Path, RoutesError> {
        let name = &interface.name;
        if !parameters::is_plain(name) {
            return Err(RoutesError::Name(name.clone()));
        }
        self.remove(name)?;
        let is_free = |slot: &u8| {
            let v4 = self.pool.v4(*slot);
            self.pool.has_table(*slot) && self.paths.values().all(|path| path.v4 != v4)
        };
        let slot = (1..=pool::SLOTS).find(is_free).ok_or(RoutesError::Full)?;
        let Interface { index, mtu, .. } = *interface;
        let (device, tun) = device::open(name, mtu)?;
        let (local_v4, v6) = (self.pool.v4(slot), device::has_v6(&tun).then(|| self.pool.v6(slot)));
        let table = pool::table(slot).to_string();
        let placed = Placed { tun: tun.clone(), index, mtu, table, v4: local_v4, v6 };
        self.paths.insert(name.clone(), placed);
        if let Err(error) = self.set_up(interface) {
            // The first error counts.
            let _ = self.remove(name);
            return Err(error);
        }
        let local_v6 = self.paths[name].v6;
        Ok(Path { device, name: tun, mtu, local_v4, local_v6 })
    }

    /// Follows a change of the interface: its addresses, routes or MTU. If they are as before, the
    /// kernel reports no change to [`crate::interfaces::Watch`]. Without a path it does nothing.
    ///
    /// # Errors
    /// A program fails, for example because the interface has changed again.
    pub fn refresh(&mut self, interface: &Interface) -> Result<(), RoutesError> {
        let Some(path) = self.paths.get_mut(&interface.name) else { return Ok(()) };
        if path.mtu != interface.mtu {
            device::set_mtu(&path.tun, interface.mtu)?;
            path.mtu = interface.mtu;
        }
        let former = std::mem::replace(&mut path.index, interface.index);
        path.families().try_for_each(|family| path.lead(family, interface))?;
        // Another device has this name now.
        if self.paths.values().all(|path| path.index != former) {
            self.parameters.take(former).restore()?;
        }
        self.forward(interface)
    }

    /// Follows what other programs do to the parameters that paths need: if they let the kernel
    /// forward for all devices, nothing is dropped any more. Without a change it does nothing.
    ///
    /// # Errors
    /// A program fails.
    pub fn review(&mut self) -> Result<(), RoutesError> {
        for family in families() {
            let is_new =
                self.written.get(&(family, FORWARD)).is_some_and(|rules| *rules != self.forwarded(family));
            if is_new {
                self.filter(family)?;
            }
        }
        self.parameters.apply()
    }

    /// Removes what was made for the path of this interface. Without a path it does nothing.
    ///
    /// # Errors
    /// A program fails.
    pub fn remove(&mut self, name: &str) -> Result<(), RoutesError> {
        let Some(path) = self.paths.remove(name) else { return Ok(()) };
        if self.paths.is_empty() {
            self.written.clear();
            return clear(std::mem::take(&mut self.parameters), &self.lock);
        }
        for family in path.families() {
            for rule in path.rules(family) {
                let rule: Vec<&str> = rule.split(' ').collect();
                gone(run("ip", &[&[family.option(), "rule", "delete"], &rule[..]].concat(), ""))?;
            }
            gone(flush(family, &path.table))?;
        }
        self.parameters.take(path.index).restore()?;
        families().try_for_each(|family| self.filter(family))
    }

    /// Removes what a killed process has left in this network namespace. Without anything left it
    /// does nothing.
    ///
    /// # Errors
    /// [`RoutesError::Running`]: the process is still there. A program is missing or fails.
    pub fn tear_down() -> Result<(), RoutesError> {
        let (lock, _owner) = lock()?;
        clear(left(&lock)?, &lock)
    }

    fn set_up(&mut self, interface: &Interface) -> Result<(), RoutesError> {
        let name = &interface.name;
        self.open(interface, Family::V4)?;
        if self.paths[name].v6.is_some()
            && let Err(error) = self.open(interface, Family::V6)
        {
            self.paths.get_mut(name).expect("it is placed").v6 = None;
            let text = format!("{name} is used without IPv6: {}", Error::from(error));
            Entry::warning("without IPv6", text).with("interface", name.as_str()).write();
        }
        self.forward(interface)
    }

    /// Leads the packets of a family.
    fn open(&mut self, interface: &Interface, family: Family) -> Result<(), RoutesError> {
        // First, so that no packet passes with its own address.
        self.filter(family)?;
        let path = &self.paths[&interface.name];
        // What the interface has no route to would follow the routes of the host.
        let Placed { table, .. } = path;
        let last = format!("unreachable {} table {table} metric {LAST} proto {PROTOCOL}", family.any());
        let rules: Vec<_> = path.rules(family).iter().map(|rule| format!("rule add {rule}\n")).collect();
        ip(family, &format!("route replace {last}\n{}", rules.concat()))?;
        path.lead(family, interface)
    }

    /// Lets the kernel forward what arrives at the interface.
    fn forward(&mut self, interface: &Interface) -> Result<(), RoutesError> {
        let path = &self.paths[&interface.name];
        if self.parameters.plan(interface, path.v6.is_some()) {
            // The former values are written down before they change.
            families().try_for_each(|family| self.filter(family))?;
        }
        self.parameters.apply()
    }

    /// Writes the rules of all paths into the chains.
    fn filter(&mut self, family: Family) -> Result<(), RoutesError> {
        let (mut inward, mut outward) = (Vec::new(), Vec::new());
        for (interface, path) in &self.paths {
            let Some(local) = path.local(family) else { continue };
            outward.push(format!("-s {local} -o {interface} -j MASQUERADE"));
            inward.extend(self.options.listen.iter().map(|port| {
                format!(
                    "-i {interface} -p tcp --dport {port} -m addrtype --dst-type LOCAL \
                     -j DNAT --to-destination {local}"
                )
            }));
        }
        // The kernel may have no `nat` for IPv6. Rules of a path that is gone must go, too.
        if family == Family::V6 && outward.is_empty() && !self.written.contains_key(&(family, FORWARD)) {
            return Ok(());
        }
        if family == Family::V4 {
            let copy: String = self.parameters.comments().map(|comment| comment + "\n").collect();
            let write = || {
                self.lock.set_len(0)?;
                self.lock.write_all_at(copy.as_bytes(), 0)
            };
            write().map_err(|error| RoutesError::Lock { path: LOCKS.into(), error })?;
        }
        for (chain, rules) in [(FORWARD, self.forwarded(family)), (INWARD, inward), (OUTWARD, outward)] {
            chain.set(family, &rules)?;
            self.written.insert((family, chain), rules);
        }
        Ok(())
    }

    /// Returns what looks whether the chains are as they were written. It is for another thread,
    /// since programs take their time.
    pub fn inspection(&self) -> impl FnOnce() -> Result<bool, RoutesError> + Send + use<> {
        let counts: Vec<_> = self.written.iter().map(|(chain, rules)| (*chain, rules.len())).collect();
        move || {
            for ((family, chain), rules) in counts {
                if !chain.is_intact(family, rules)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }

    /// Writes the chains anew, which another program has changed.
    ///
    /// # Errors
    /// A program fails.
    pub fn mend(&mut self) -> Result<(), RoutesError> {
        if self.paths.is_empty() { Ok(()) } else { families().try_for_each(|family| self.filter(family)) }
    }

    /// The rules for packets that the kernel forwards.
    fn forwarded(&self, family: Family) -> Vec<String> {
        let mut forward = Vec::new();
        for (interface, path) in &self.paths {
            if path.local(family).is_none() {
                continue;
            }
            let tun = &path.tun;
            forward.extend([
                // The packet filter does not translate a packet that conntrack refuses.
                format!("-i {tun} -m conntrack --ctstate INVALID -j DROP"),
                format!("-i {tun} -o {interface} -j ACCEPT"),
                format!("-i {tun} -j DROP"),
                // Answers may arrive at another interface.
                format!("-o {tun} -m conntrack --ctstate ESTABLISHED,RELATED,DNAT -j ACCEPT"),
                format!("-o {tun} -j DROP"),
            ]);
        }
        // What the kernel forwards only because of us.
        forward.extend(self.parameters.drops(family));
        if family == Family::V4 {
            forward.extend(self.parameters.comments());
        }
        forward
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        if let Err(error) = clear(std::mem::take(&mut self.parameters), &self.lock) {
            Entry::warning("routes remain", Error::from(error).to_string()).write();
        }
    }
}

impl Placed {
    fn local(&self, family: Family) -> Option<IpAddr> {
        match family {
            Family::V4 => Some(self.v4.into()),
            Family::V6 => self.v6.map(IpAddr::V6),
        }
    }

    fn families(&self) -> impl Iterator<Item = Family> + use<> {
        let v6 = self.v6.is_some();
        Family::BOTH.into_iter().filter(move |family| v6 || *family == Family::V4)
    }

    /// The rules that lead to the table. The kernel also looks there when it checks the way back of
    /// a packet from the network (`rp_filter`), since it does so with the packet's destination as
    /// source.
    fn rules(&self, family: Family) -> Vec<String> {
        let rule = |end: &str, local: IpAddr| {
            let table = &self.table;
            format!("{end} {local} lookup {table} priority {PRIORITY} protocol {PROTOCOL}")
        };
        self.local(family).map_or_else(Vec::new, |local| vec![rule("from", local), rule("to", local)])
    }

    /// Changes the table to the routes of the interface, where it differs.
    fn lead(&self, family: Family, interface: &Interface) -> Result<(), RoutesError> {
        let wanted = self.wanted(family, interface);
        let there = routes_of(family, &self.table)?;
        let line = |verb: &str, (device, route): &(String, Route)| {
            let Route { destination, gateway, on_link, metric, .. } = route;
            // A next hop of the other family needs its family's name.
            let via = gateway.map_or_else(String::new, |gateway| match Family::of(gateway) {
                Family::V6 if family == Family::V4 => format!("via inet6 {gateway}"),
                _ => format!("via {gateway}"),
            });
            let on_link = if *on_link { "onlink" } else { "" };
            format!(
                "route {verb} {destination} {via} dev {device} {on_link} metric {metric} \
                 table {} proto {PROTOCOL}\n",
                self.table
            )
        };
        let old = there.iter().filter(|route| !wanted.contains(route)).map(|route| line("delete", route));
        let new = wanted.iter().filter(|route| !there.contains(route)).map(|route| line("append", route));
        let commands: String = old.chain(new).collect();
        if commands.is_empty() { Ok(()) } else { ip(family, &commands) }
    }

    /// The routes of the table, each with its device.
    fn wanted(&self, family: Family, interface: &Interface) -> Vec<(String, Route)> {
        let Some(local) = self.local(family) else { return Vec::new() };
        let metric = if family == Family::V4 { 0 } else { USUAL_METRIC };
        let (destination, gateway) = (local.to_string(), None);
        let own = Route { family, destination, gateway, on_link: false, metric };
        let mut wanted = vec![(self.tun.clone(), own)];
        let named = |route| (interface.name.clone(), route);
        let of_family = |route: &&Route| route.family == family && !route.destination.starts_with("fe80:");
        wanted.extend(interface.routes.iter().filter(of_family).cloned().map(named));
        wanted
    }
}

/// Removes all that bears our name. On a busy host each program takes its time, so there are few,
/// and those of the two families run at the same time.
fn clear(parameters: Parameters, lock: &File) -> Result<(), RoutesError> {
    let removals = for_each_family(|family| {
        patiently(|| {
            let commands =
                format!("rule flush protocol {PROTOCOL}\nroute flush table all proto {PROTOCOL}\n");
            run("ip", &[family.option(), "-batch", "-"], &commands)
        })?;
        match chains::removal(family, &[INWARD, OUTWARD, FORWARD]) {
            // Nothing was made with a program that is missing.
            Err(CommandError::Program { .. }) if family == Family::V6 => Ok(String::new()),
            removal => removal,
        }
    })?;
    // The chains hold the former values, so they are the last.
    parameters.restore()?;
    for_each_family(|family| chains::restore(family, removals.get(&family).map_or("", String::as_str)))?;
    lock.set_len(0).map_err(|error| RoutesError::Lock { path: LOCKS.into(), error })
}

/// Runs `deed` for all families of the kernel at the same time, and returns the results or the
/// first error.
fn for_each_family<T: Send>(
    deed: impl Fn(Family) -> Result<T, CommandError> + Sync,
) -> Result<BTreeMap<Family, T>, CommandError> {
    thread::scope(|scope| {
        let deed = &deed;
        let started: Vec<_> = families().map(|family| (family, scope.spawn(move || deed(family)))).collect();
        let done = |(family, thread): (Family, thread::ScopedJoinHandle<'_, _>)| {
            let result: Result<T, CommandError> = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            Ok((family, result?))
        };
        started.into_iter().map(done).collect()
    })
}

/// Removes our routes of a table.
fn flush(family: Family, table: &str) -> Result<String, CommandError> {
    let arguments = [family.option(), "route", "flush", "table", table, "proto", PROTOCOL];
    patiently(|| run("ip", &arguments, ""))
}

/// Removes routes that also end with their devices, meanwhile: then the program stops at the first
/// that is gone, and is called again.
fn patiently(flush: impl Fn() -> Result<String, CommandError>) -> Result<String, CommandError> {
    let mut tries = 0..FLUSHES;
    loop {
        match flush() {
            Err(CommandError::Failed { reason, .. })
                if reason.contains("No such process") && tries.next().is_some() => {}
            flushed => return flushed,
        }
    }
}

/// The parameters that a killed process has left changed.
fn left(lock: &File) -> Result<Parameters, RoutesError> {
    let mut copy = String::new();
    // The namespace of the file may be gone, and have left its number to another: our rules tell.
    for family in families() {
        if !run("ip", &[family.option(), "rule", "show", "protocol", PROTOCOL], "")?.is_empty() {
            copy.clear();
            let (mut file, path) = (lock, LOCKS.into());
            let read = file.rewind().and_then(|()| file.read_to_string(&mut copy));
            read.map_err(|error| RoutesError::Lock { path, error })?;
        }
    }
    Ok(Parameters::left(&copy)?)
}

/// The families that the kernel has.
fn families() -> impl Iterator<Item = Family> {
    let has_v6 = FilePath::new("/proc/sys/net/ipv6").exists();
    Family::BOTH.into_iter().filter(move |family| has_v6 || *family == Family::V4)
}

/// Runs commands of `ip`, one a line.
fn ip(family: Family, commands: &str) -> Result<(), RoutesError> {
    run("ip", &[family.option(), "-batch", "-"], commands)?;
    Ok(())
}

/// What is no longer there need not be removed.
fn gone(removed: Result<String, CommandError>) -> Result<(), CommandError> {
    match removed {
        Err(CommandError::Failed { reason, .. })
            if reason.contains("No such file") || reason.contains("does not exist") =>
        {
            Ok(())
        }
        removed => removed.map(drop),
    }
}

/// Keeps other processes away from this network namespace until the file is dropped, or the process
/// ends.
///
/// There are two: that of the process, and one that the programs inherit which it starts, so that
/// they have ended, too, when another process changes anything.
fn lock() -> Result<(File, File), RoutesError> {
    let folder = FilePath::new(LOCKS);
    let failed = |path: &FilePath, error| RoutesError::Lock { path: path.to_owned(), error };
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(folder, error)),
        _ => {}
    }
    // Threads may be in different namespaces.
    let namespace = FilePath::new("/proc/thread-self/ns/net");
    let number = fs::metadata(namespace).map_err(|error| failed(namespace, error))?.ino();
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let locked = |name: String, patience: u32| {
        let path = folder.join(name);
        let file = options.open(&path).map_err(|error| failed(&path, error))?;
        let mut tries = 0..patience;
        loop {
            match (file.try_lock(), tries.next()) {
                (Ok(()), _) => return Ok((file, path)),
                (Err(TryLockError::WouldBlock), Some(_)) => thread::park_timeout(PAUSE),
                (Err(TryLockError::WouldBlock), None) => return Err(RoutesError::Running),
                (Err(TryLockError::Error(error)), _) => return Err(failed(&path, error)),
            }
        }
    };
    // What a killed process was about to start has this lock until it is executed.
    let (owner, _) = locked(format!("{number}.owner"), PATIENCE / 15)?;
    // A program that a killed process has started may still work.
    let (file, path) = locked(number.to_string(), PATIENCE)?;
    fcntl_setfd(&file, FdFlags::empty()).map_err(|error| failed(&path, error.into()))?;
    Ok((file, owner))
}

impl RoutesError {
    /// Whether the same may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        !matches!(self, Self::Name(_))
    }
}

impl From<CommandError> for RoutesError {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

impl From<RoutesError> for Error {
    fn from(error: RoutesError) -> Self {
        match error {
            RoutesError::Running => {
                Self::input("another `anabranch multipath` runs in this network namespace")
                    .with_hint("stop that process")
            }
            RoutesError::Lock { path, error } => {
                Self::missing(format!("cannot use {}: {error}", path.display())).with_hint(PRIVILEGES)
            }
            RoutesError::Name(name) => {
                Self::input(format!("the packet filter cannot have the interface name `{name}`"))
                    .with_hint("rename the interface: ip link set dev NAME name NEW")
            }
            RoutesError::Device { name, error } => {
                let hint = match error.kind() {
                    io::ErrorKind::PermissionDenied => PRIVILEGES,
                    _ => "the kernel needs the module: modprobe tun",
                };
                Self::missing(format!("cannot make the TUN device `{name}`: {error}")).with_hint(hint)
            }
            RoutesError::Full => Self::missing("no addresses or routing tables are left for a path")
                .with_hint("remove routes that cover all private addresses"),
            RoutesError::Parameter { path, error } => {
                Self::missing(format!("cannot set {}: {error}", path.display())).with_hint(PRIVILEGES)
            }
            RoutesError::Command(error) => error
                .into_error("set up the paths", "iptable_nat ip6table_nat iptable_filter ip6table_filter"),
        }
    }
}

/// Protocol of our routes and rules (`ip route`, RTPROT): no routing daemon of iproute2's list has
/// it.
const PROTOCOL: &str = "171";
/// Priority of our rules: before those of the host's own tables, and of VPNs.
const PRIORITY: &str = "4710";
/// Metric of the route that refuses packets. `ip` does not flush the largest one.
const LAST: u32 = u32::MAX >> 1;
/// The kernel's metric of IPv6 routes (IP6_RT_PRIO_USER).
const USUAL_METRIC: u32 = 1024;
/// Number of times that the lock of a killed process's programs is tried, and the time between
/// them: together 30 s.
const PATIENCE: u32 = 3000;
const PAUSE: Duration = Duration::from_millis(10);
/// Number of times that routes are removed while others do so.
const FLUSHES: u32 = 10;
/// Folder of the locks, two for each network namespace.
const LOCKS: &str = "/run/anabranch-multipath";
/// The firewall of the host follows it: packets of this host's own programs do not pass FORWARD.
const FORWARD: Chain<'_> =
    Chain { table: "filter", name: "anabranch-multipath", from: "FORWARD", place: Place::First };
const INWARD: Chain<'_> =
    Chain { table: "nat", name: "anabranch-multipath-in", from: "PREROUTING", place: Place::First };
const OUTWARD: Chain<'_> =
    Chain { table: "nat", name: "anabranch-multipath-out", from: "POSTROUTING", place: Place::First };
