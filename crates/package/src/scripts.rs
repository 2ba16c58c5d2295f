//! The scripts of packages that have systemd units.
//!
//! No unit is enabled or started by an installation: without keys of the operator a gateway has
//! nothing to do. An upgrade restarts the units that run. Users and state folders are systemd's
//! (`DynamicUser=`, `StateDirectory=`), so that only a purge has something to remove.

use crate::manifest::Package;

/// Whether systemd runs: packages are also installed in containers and image builds.
const RUNS: &str = "[ -d /run/systemd/system ]";

/// What happens to the units, in the commands of sh(1).
pub(crate) struct Scripts {
    /// After the files are there, the first time.
    pub(crate) installed: String,
    /// After an upgrade.
    pub(crate) upgraded: String,
    /// Before the files are removed, not before an upgrade.
    pub(crate) stopping: String,
    /// After a removal that was given up: units that are enabled run again.
    pub(crate) restarting: String,
    /// Removes the links by which units are enabled.
    pub(crate) disabling: String,
    /// After they were removed.
    pub(crate) removed: String,
    /// When configuration and state are to go too.
    pub(crate) purged: String,
}

impl Scripts {
    pub(crate) fn of(package: &Package) -> Self {
        let units = package.units.join(" ");
        let has_units = !package.units.is_empty();
        let reload = format!("if {RUNS}; then systemctl daemon-reload || true; fi\n");
        let when = |text: String| if has_units { text } else { String::new() };
        Self {
            installed: when(reload.clone()),
            upgraded: when(format!("{reload}if {RUNS}; then systemctl try-restart {units} || true; fi\n")),
            stopping: when(format!("if {RUNS}; then systemctl stop {units} || true; fi\n")),
            restarting: when(format!(
                "if {RUNS}; then\nfor unit in {units}; do\n\
                 if systemctl --quiet is-enabled $unit; then systemctl start $unit || true; fi\ndone\nfi\n"
            )),
            // Also where systemd does not run, as in an image.
            disabling: when(format!(
                "if command -v systemctl > /dev/null; then systemctl --quiet disable {units} || true; fi\n"
            )),
            removed: when(reload),
            // The unit is gone when a purge comes, and `systemctl disable` would not know it.
            purged: package
                .units
                .iter()
                .map(|unit| format!("rm -f /etc/systemd/system/*.wants/{unit}\n"))
                .chain(package.purge.iter().map(|folder| format!("rm -rf {folder}\n")))
                .collect(),
        }
    }
}
