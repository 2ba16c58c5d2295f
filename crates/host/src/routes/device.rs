//! The TUN device of a path.

use std::fs;
use std::io;
use std::path::Path;

use tun_rs::{DeviceBuilder, SyncDevice};

use super::RoutesError;
use crate::commands::{CommandError, run};
use crate::interfaces::ALIAS;

/// Makes the device of an interface, and returns it with its name. The kernel forwards its packets.
pub(super) fn open(interface: &str, mtu: u32) -> Result<(SyncDevice, String), RoutesError> {
    let name = name(interface, &exists);
    let made = DeviceBuilder::new().name(&name).enable(false).build_sync();
    let device = made.and_then(|device| device.set_nonblocking(true).map(|()| device));
    let device = device.map_err(|error| RoutesError::Device { name: name.clone(), error })?;
    // With a link-local address the kernel would look for routers behind the device.
    if exists_v6(&name) {
        run("ip", &["link", "set", "dev", &name, "addrgenmode", "none"], "")?;
    }
    let ready = ["link", "set", "dev", &name, "alias", ALIAS, "mtu", &mtu.to_string(), "up"];
    run("ip", &ready, "")?;
    for file in [format!("ipv4/conf/{name}/forwarding"), format!("ipv6/conf/{name}/force_forwarding")] {
        let path = Path::new(super::parameters::ROOT).join(file);
        match fs::write(&path, "1") {
            // Older kernels have one switch for all devices.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(|error| RoutesError::Parameter { path, error })?,
        }
    }
    Ok((device, name))
}

pub(super) fn set_mtu(device: &str, mtu: u32) -> Result<(), CommandError> {
    run("ip", &["link", "set", "dev", device, "mtu", &mtu.to_string()], "").map(drop)
}

/// Whether the kernel speaks IPv6 over the device.
pub(super) fn has_v6(device: &str) -> bool {
    let file = Path::new(super::parameters::ROOT).join(format!("ipv6/conf/{device}/disable_ipv6"));
    fs::read_to_string(file).is_ok_and(|disabled| disabled.trim() == "0")
}

fn exists_v6(device: &str) -> bool {
    Path::new(super::parameters::ROOT).join("ipv6/conf").join(device).exists()
}

/// Whether there is such a device. Unlike `/sys`, this shows the namespace of this thread.
fn exists(device: &str) -> bool {
    Path::new(super::parameters::ROOT).join("ipv4/conf").join(device).exists()
}

/// A name that no device has: the interface's after `ab-`, as far as there is room.
fn name(interface: &str, is_taken: &dyn Fn(&str) -> bool) -> String {
    let name: String = format!("ab-{interface}").chars().take(LONGEST).collect();
    let numbered = (0..1000_u32).map(|number| {
        let end = format!("-{number}");
        let room = LONGEST - end.len();
        name.chars().take(room).collect::<String>() + &end
    });
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name));
    // The kernel then says that the device exists.
    free.unwrap_or(name)
}

/// Bytes of a device's name (IFNAMSIZ without the end).
const LONGEST: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_unique() {
        assert_eq!(name("eth0", &|_| false), "ab-eth0");
        assert_eq!(name("enp0s31f6u1u4i2", &|_| false), "ab-enp0s31f6u1u");
        assert_eq!(name("eth0", &|name| name == "ab-eth0"), "ab-eth0-0");
        let taken = ["ab-enp0s31f6u1u", "ab-enp0s31f6u-0"];
        assert_eq!(name("enp0s31f6u1u4i2", &|name| taken.contains(&name)), "ab-enp0s31f6u-1");
    }
}
