//! The Debian packages: read by dpkg-deb; installed, used, upgraded and purged in a root without
//! cargo.

use std::fs;
use std::path::Path;
use std::process::Command;

use anabranch_testkit::debian::{find_or_install, skipped};
use anabranch_testkit::netns;

use crate::{Release, said};

#[test]
fn dpkg_reads_the_packages() {
    let Some(dpkg) = find_or_install("dpkg-deb", "dpkg") else { return };
    let release = Release::new("1.2.3", "deb");
    for (name, depends) in [("anabranch_", "libc6 (>= 2."), ("anabranch-lab_", "anabranch (= 1.2.3)")] {
        let package = release.file(name, ".deb");
        let field = |field: &str| said(Command::new(&dpkg).arg("--field").arg(&package).arg(field));
        assert_eq!(field("Version"), "1.2.3\n");
        assert!(field("Depends").contains(depends), "{}", field("Depends"));
        let summary = field("Description").lines().next().map(str::len);
        assert!(summary.is_some_and(|length| length <= 80), "Debian policy 3.4.1: {summary:?}");
    }
    let listed = said(Command::new(&dpkg).arg("--contents").arg(release.file("anabranch_", ".deb")));
    assert!(listed.lines().all(|line| line.contains(" root/root ") || line.contains(" 0/0 ")), "{listed}");
    let mode = |path: &str| {
        let line =
            listed.lines().find(|line| line.ends_with(path)).unwrap_or_else(|| panic!("{path}: {listed}"));
        line[..10].to_owned()
    };
    assert_eq!(mode("usr/bin/anabranch-gateway"), "-rwxr-xr-x");
    assert_eq!(mode("etc/anabranch/gateway.toml"), "-rw-r--r--");
    assert_eq!(mode("usr/share/man/man1/anabranch-gateway.1.gz"), "-rw-r--r--");
    assert_eq!(mode("usr/share/doc/anabranch/LICENSE-MIT"), "-rw-r--r--");
}

/// The machine's own root under a layer that keeps every change, in a mount namespace of its own.
/// cargo is not on the path there.
const ROOT: &str = r#"
set -e
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir upper work root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" root
mount --bind /dev root/dev
mount -t proc proc root/proc
mkdir root/packages
cp "$2"/*.deb "$3"/*.deb root/packages
cp "$4" root/packages/test.sh
ip link set lo up
chroot root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent XDG_STATE_HOME=/tmp/state sh -e /packages/test.sh
rm -r root/packages
umount root/dev root/proc
# What is left of the packages: neither dpkg's own files nor what others do when packages come and go.
find upper -mindepth 1 ! -type d ! -type c -printf '%P\n' |
    grep -Ev '^(var/lib/dpkg/|var/log/|var/cache/|etc/ld.so.cache$)' > left || true
"#;

/// What an operator does, one command after the other.
const TEST: &str = r#"
if command -v cargo; then echo "cargo is here"; exit 1; fi
say() { echo "--- $*"; }
say install
dpkg --install /packages/anabranch_1.0.0_*.deb
anabranch-gateway --version
say units
systemd-analyze verify /usr/lib/systemd/system/anabranch-gateway.service /usr/lib/systemd/system/anabranch-node.service
for unit in gateway node; do
    systemd-analyze security --offline=true --no-pager --threshold=12 /usr/lib/systemd/system/anabranch-$unit.service > /dev/null
done
say keys
cd /etc/anabranch
anabranch-key new gateway node /tmp/sender
cp /tmp/sender.pub senders.pub
anabranch-gateway --check --config gateway.toml --key gateway.key
anabranch-node --check --config node.toml --key node.key --gateways 127.0.0.1=gateway.pub
say push
mkdir /var/lib/anabranch-node /var/lib/anabranch-gateway
anabranch-node --out /var/lib/anabranch-node/firmware --key node.key --senders senders.pub \
    --gateways 127.0.0.1=gateway.pub > /tmp/node.txt 2>&1 &
node=$!
anabranch-gateway --allow 127.0.0.1 --key gateway.key --senders senders.pub > /tmp/gateway.txt 2>&1 &
gateway=$!
anabranch-push /usr/bin/anabranch-key --to 127.0.0.1 --key /tmp/sender.key --node-key node.pub
cmp /usr/bin/anabranch-key /var/lib/anabranch-node/firmware
kill $node $gateway
wait
say upgrade
echo '# mine' >> gateway.toml
dpkg --install /packages/anabranch_1.1.0_*.deb
grep -q '# mine' gateway.toml
dpkg-query --show anabranch
say laboratory
dpkg --install /packages/anabranch-lab_1.1.0_*.deb
cd /tmp
anabranch run /usr/share/anabranch/scenarios/three-gateways.toml > /dev/null
anabranch plan set > /dev/null
say remove
dpkg --remove anabranch-lab
dpkg --remove anabranch
test -e /etc/anabranch/gateway.key
say purge
dpkg --purge anabranch-lab anabranch
test ! -e /etc/anabranch
rm -rf /tmp/sender.* /tmp/node.txt /tmp/gateway.txt /tmp/state
"#;

#[test]
fn a_package_is_installed_used_upgraded_and_purged() {
    if netns::skipped() || find_or_install("systemd-analyze", "systemd").is_none() {
        return;
    }
    if find_or_install("dpkg", "dpkg").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("place");
    fs::create_dir(&place).expect("a folder");
    let test = folder.path().join("test.sh");
    fs::write(&test, TEST).expect("a file");
    let probe = format!(
        "mount -t tmpfs tmpfs {0} && cd {0} && mkdir u w r && mount -t overlay overlay -o lowerdir=/,upperdir=u,workdir=w r",
        place.display()
    );
    let unshared = |script: &str, args: &[&Path]| {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"])
            .args(args);
        command
    };
    if !unshared(&probe, &[]).output().is_ok_and(|output| output.status.success()) {
        skipped("installing a package: the kernel mounts no overlay here");
        return;
    }
    let [old, new] = ["1.0.0", "1.1.0"].map(|version| Release::new(version, "deb"));
    let [from, to] = [&old, &new].map(|release| release.0.path().join("out"));
    let script = format!("{ROOT}\ncat left\n");
    let output = said(&mut unshared(&script, &[&place, &from, &to, &test]));
    let (done, left) = output.split_once("--- purge").expect("it went on to the end");
    for step in ["install", "units", "keys", "push", "upgrade", "laboratory", "remove"] {
        assert!(done.contains(&format!("--- {step}")), "{output}");
    }
    assert!(done.contains("anabranch\t1.1.0"), "{output}");
    let left: Vec<&str> =
        left.lines().filter(|line| line.contains("anabranch")).filter(|line| !line.contains("...")).collect();
    assert_eq!(left, [""; 0], "left behind by a purge: {output}");
}
