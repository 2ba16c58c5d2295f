//! Parameters of the kernel (sysctl) that let it forward packets, and their former values.
//!
//! The former values are comments in our chain of the packet filter. So they are in the network
//! namespace that they belong to, and end with it. A copy is for the time when the chain is
//! emptied.

use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::netdevice::{index_to_name, name_to_index};
use rustix::net::{AddressFamily, SocketType, socket};

use super::{FORWARD, RoutesError};
use crate::chains::list;
use crate::commands::{CommandError, Family};
use crate::interfaces::Interface;

/// Folder of all parameters. It shows the namespace of the thread that looks.
pub(super) const ROOT: &str = "/proc/sys/net";

/// Changed parameters, in the order in which they are restored.
#[derive(Default, Debug)]
pub(super) struct Parameters(Vec<Former>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Former {
    /// Path below [`ROOT`]: `FAMILY/conf/DEVICE/NAME`. It changes when the device is renamed.
    file: String,
    value: String,
    /// Index of the device; 0 for what belongs to none.
    index: u32,
    /// Whether the kernel already forwarded for all devices, so that this one was an exception.
    general: bool,
}

impl Parameters {
    /// Those that a killed process has left changed: those of the chain, or else of a copy.
    pub(super) fn left(copy: &str) -> Result<Self, CommandError> {
        let listed = list(Family::V4, FORWARD.table)?;
        let of_ours = listed.lines().filter(|line| line.starts_with(&format!("-A {} ", FORWARD.name)));
        let of_chain: Vec<Former> = of_ours.filter_map(parse).collect();
        Ok(Self(if of_chain.is_empty() { copy.lines().filter_map(parse).collect() } else { of_chain }))
    }

    /// Adds what must change so that packets from the interface are forwarded. Returns whether that
    /// is anything new.
    pub(super) fn plan(&mut self, interface: &Interface, v6: bool) -> bool {
        let name = &interface.name;
        let is_renamed = self.follow();
        let mut needed = vec![format!("ipv4/conf/{name}/forwarding")];
        let is_router = read("ipv6/conf/all/forwarding").is_none_or(|value| value != "0");
        if v6 && interface.addresses.iter().any(std::net::IpAddr::is_ipv6) && !is_router {
            needed.extend(forwarding_v6(name, Path::new(ROOT).join("ipv6/conf")));
        }
        // Restoring the switch of all devices changes those that are as wanted, too.
        let is_global = needed.iter().any(|file| file.contains("/all/"));
        let known = self.0.len();
        for file in needed {
            let is_known = self.0[..known].iter().any(|former| former.file == file);
            let Some(value) = read(&file).filter(|_| !is_known) else { continue };
            if is_global || value != wanted(&file, &value) {
                let (index, general) = (index_of(part(&file, 2)), is_general(&file));
                self.0.push(Former { file, value, index, general });
            }
        }
        is_renamed || self.0.len() > known
    }

    /// Notes the new names of devices, and forgets those that are gone. Returns whether there are
    /// any. A device keeps its parameters when it is renamed.
    fn follow(&mut self) -> bool {
        let before = self.0.clone();
        self.0.retain_mut(|former| match name_of(former.index) {
            Ok(name) if is_plain(&name) => {
                former.file = [part(&former.file, 0), "conf", &name, part(&former.file, 3)].join("/");
                true
            }
            Err(Errno::NODEV) => former.index == 0,
            _ => true,
        });
        self.0 != before
    }

    /// Changes the parameters, where they are not as wanted yet.
    pub(super) fn apply(&self) -> Result<(), RoutesError> {
        let changes = self.0.iter().rev().map(|Former { file, value, .. }| (file, wanted(file, value)));
        changes.into_iter().try_for_each(|(file, value)| write(file, value))
    }

    /// Restores the parameters of devices that are still there.
    pub(super) fn restore(mut self) -> Result<(), RoutesError> {
        self.follow();
        self.0
            .iter()
            .filter(|former| !former.is_superseded())
            .try_for_each(|Former { file, value, .. }| write(file, value))
    }

    /// Removes and returns the parameters of an interface that belong to no other one.
    pub(super) fn take(&mut self, index: u32) -> Self {
        let is_global = self.0.iter().any(|former| former.device() == "all");
        let is_own =
            |former: &mut Former| former.index == index && !(is_global && former.family() == Family::V6);
        Self(self.0.extract_if(.., is_own).collect())
    }

    /// Rules that drop what the kernel forwards only because of the changes.
    pub(super) fn drops(&self, family: Family) -> impl Iterator<Item = String> {
        let is_ours = move |former: &&Former| former.family() == family && !former.is_superseded();
        let of_family = self.0.iter().filter(is_ours);
        of_family.filter_map(|former| match (former.device(), former.name()) {
            ("all", "forwarding") => Some("-j DROP".to_owned()),
            // With one for all, those of single devices change nothing.
            (device, "force_forwarding") => Some(format!("-i {device} -j DROP")),
            (device, "forwarding") if former.family() == Family::V4 => Some(format!("-i {device} -j DROP")),
            _ => None,
        })
    }

    /// Rules without effect that hold the former values.
    pub(super) fn comments(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|Former { file, value, index, general }| {
            format!("-m comment --comment {MARK}{file}={value},{index},{}", u8::from(*general))
        })
    }
}

impl Former {
    /// Whether another program has let the kernel forward for all devices since. Then it counts
    /// what that program wants, not the former value.
    fn is_superseded(&self) -> bool {
        !self.general && is_general(&self.file)
    }

    fn family(&self) -> Family {
        if part(&self.file, 0) == "ipv4" { Family::V4 } else { Family::V6 }
    }

    fn device(&self) -> &str {
        part(&self.file, 2)
    }

    fn name(&self) -> &str {
        part(&self.file, 3)
    }
}

/// Whether the kernel forwards for all devices, other than by our changes.
fn is_general(file: &str) -> bool {
    let switches: &[_] = match (part(file, 0), part(file, 3)) {
        ("ipv4", _) => &["ipv4/conf/all/forwarding"],
        (_, "force_forwarding") => &["ipv6/conf/all/forwarding", "ipv6/conf/all/force_forwarding"],
        // Here the switch of all devices is what we change.
        _ => &[],
    };
    switches.iter().any(|switch| read(switch).is_some_and(|value| value != "0"))
}

fn part(file: &str, number: usize) -> &str {
    file.split('/').nth(number).unwrap_or_default()
}

/// The index of a device; 0 for none. Unlike `/sys`, a socket shows the namespace of this thread.
fn index_of(device: &str) -> u32 {
    let socket = socket(AddressFamily::UNIX, SocketType::DGRAM, None);
    socket.and_then(|socket| name_to_index(socket, device)).unwrap_or(0)
}

fn name_of(index: u32) -> Result<String, Errno> {
    index_to_name(socket(AddressFamily::UNIX, SocketType::DGRAM, None)?, index)
}

/// What must change for IPv6 of an interface, in the order in which it is restored.
fn forwarding_v6(interface: &str, folder: impl AsRef<Path>) -> Vec<String> {
    let folder = folder.as_ref();
    if folder.join(interface).join("force_forwarding").exists() {
        return vec![format!("ipv6/conf/{interface}/force_forwarding")];
    }
    // Before Linux 6.17 there is one switch for all devices, which makes them routers: they would
    // no longer learn routes from router advertisements, unless accept_ra is 2. The switch also
    // sets that of each device, so that theirs are restored after it.
    let mut devices: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|device| device != "all" && is_plain(device))
        .collect();
    devices.sort();
    let each = |name: &'static str| {
        devices.iter().map(move |device| format!("ipv6/conf/{device}/{name}")).collect::<Vec<_>>()
    };
    let all = vec!["ipv6/conf/all/forwarding".to_owned()];
    [all, each("forwarding"), each("accept_ra")].concat()
}

/// The value of a parameter while paths are there, with this former value.
fn wanted<'a>(file: &str, former: &'a str) -> &'a str {
    match (file.ends_with("/accept_ra"), former) {
        // 0 stays: such a device does not listen to routers. 2 listens in any case.
        (true, "1") => "2",
        (true, other) => other,
        (false, _) => "1",
    }
}

fn read(file: &str) -> Option<String> {
    Some(fs::read_to_string(Path::new(ROOT).join(file)).ok()?.trim().to_owned())
}

/// Writes a parameter, unless it has this value or its device is gone.
fn write(file: &str, value: &str) -> Result<(), RoutesError> {
    if read(file).is_none_or(|there| there == value) {
        return Ok(());
    }
    let path = Path::new(ROOT).join(file);
    fs::write(&path, value).map_err(|error| RoutesError::Parameter { path, error })
}

/// Reads a rule of [`Parameters::comments`], as it is listed. What we do not write is no parameter.
fn parse(rule: &str) -> Option<Former> {
    let (_, rest) = rule.split_once(MARK)?;
    let (file, rest) = rest.split_once('=')?;
    let mut numbers = rest.split(|octet: char| octet != ',' && !octet.is_ascii_digit()).next()?.split(',');
    let (value, index, general) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let parts: Vec<&str> = file.split('/').collect();
    let is_ours = match parts[..] {
        ["ipv4" | "ipv6", "conf", device, "forwarding" | "force_forwarding" | "accept_ra"] => {
            is_plain(device) && !device.starts_with('.')
        }
        _ => false,
    };
    let (file, value, index) = (file.to_owned(), value.to_owned(), index.parse().ok()?);
    (is_ours && !value.is_empty()).then_some(Former { file, value, index, general: general == "1" })
}

/// Whether a device has a name that rules can have.
pub(super) fn is_plain(device: &str) -> bool {
    !device.is_empty()
        && device.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"._-@:".contains(&octet))
}

const MARK: &str = "anabranch:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn former_values_are_read_from_listed_rules() {
        let parameters = Parameters(vec![
            Former {
                file: "ipv4/conf/eth0.7/forwarding".into(),
                value: "0".into(),
                index: 12,
                general: true,
            },
            Former { file: "ipv6/conf/all/forwarding".into(), value: "1".into(), index: 0, general: false },
        ]);
        let listed = parameters.comments().map(|rule| format!("-A {} {rule}", FORWARD.name));
        let quoted = listed.map(|rule| rule.replace("anabranch:", "\"anabranch:") + "\"");
        assert_eq!(quoted.filter_map(|rule| parse(&rule)).collect::<Vec<_>>(), parameters.0);
        for bad in [
            "anabranch:ipv4/conf/../forwarding=0,1,0",
            "anabranch:ipv4/conf/a/../../../forwarding=0,1,0",
            "anabranch:ipv4/ip_forward=0,1,0",
            "anabranch:ipv4/conf/a/forwarding=,1,0",
            "anabranch:ipv4/conf/a/forwarding=0,",
            "anabranch:ipv4/conf/a/forwarding=0,1",
            "anabranch:ipv4/conf/a/forwarding=x,1,0",
            "anabranch:/etc/passwd=0,1,0",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_kernel_with_one_switch_keeps_learning_routes() {
        let folder = tempfile::tempdir().expect("a folder");
        for device in ["all", "default", "eth0"] {
            fs::create_dir(folder.path().join(device)).expect("it is ours");
        }
        let all = [
            "all/forwarding",
            "default/forwarding",
            "eth0/forwarding",
            "default/accept_ra",
            "eth0/accept_ra",
        ];
        assert_eq!(forwarding_v6("eth0", folder.path()), all.map(|file| format!("ipv6/conf/{file}")));
        fs::write(folder.path().join("eth0/force_forwarding"), "0").expect("it is ours");
        assert_eq!(forwarding_v6("eth0", folder.path()), ["ipv6/conf/eth0/force_forwarding"]);
        assert_eq!(["0", "1", "2"].map(|value| wanted("ipv6/conf/eth0/accept_ra", value)), ["0", "2", "2"]);
    }
}
