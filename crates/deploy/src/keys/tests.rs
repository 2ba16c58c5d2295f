//! Tests of key files and revocation.

use std::collections::BTreeSet;

use clap::Parser;
use tempfile::TempDir;

use super::*;

#[derive(Debug, Parser)]
struct Gateway {
    #[command(flatten)]
    keys: OfGateway,
}

#[derive(Debug, Parser)]
struct Node {
    #[command(flatten)]
    keys: OfNode,
}

fn psk(octet: u8) -> KeyText {
    KeyText::Shared(SharedKey::from_octets([octet; 32]))
}

fn write(folder: &TempDir, name: &str, keys: &[KeyText]) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, keys.iter().map(|key| key.to_line() + "\n").collect::<String>()).unwrap();
    path
}

/// Transfers belong to the name of a key, so two keys of one name would be one sender.
#[test]
fn each_pre_shared_key_has_a_name_of_its_own() {
    let folder = TempDir::new().unwrap();
    let paths = [write(&folder, "one", &[psk(1), psk(2)]), write(&folder, "two", &[psk(3)])];
    let names = |revoked: &str| {
        let [one, two] = paths.each_ref().map(|path| path.display());
        let node =
            Node::try_parse_from(["", "--psk", &format!("{one},{two}"), "--revoked", revoked]).unwrap();
        let shared = node.keys.who().unwrap().unwrap().shared;
        let names: BTreeSet<String> = shared.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names.len(), shared.len(), "{names:?}");
        shared.into_iter().map(|(name, key)| (name, KeyText::Shared(key).to_line())).collect::<Vec<_>>()
    };
    let all = names(&write(&folder, "none", &[]).display().to_string());
    assert_eq!(all.len(), 3);
    // Revoking one key does not rename the others.
    assert_eq!(names(&psk(1).to_line()), all[1..]);
}

#[test]
fn a_gateway_serves_no_sender_whose_key_is_revoked() {
    let folder = TempDir::new().unwrap();
    let secrets = [1, 2].map(|octet| SecretKey::from_octets([octet; 32]));
    let [one, two] = secrets.each_ref().map(SecretKey::public);
    let own = write(&folder, "own", &[KeyText::Secret(SecretKey::from_octets([9; 32]))]);
    let senders = write(&folder, "senders", &[KeyText::Public(one), KeyText::Public(two)]);
    let served = |revoked: &[KeyText]| {
        let revoked = write(&folder, "revoked", revoked);
        let [own, senders, revoked] = [&own, &senders, &revoked].map(|path| path.to_str().unwrap());
        let words = ["", "--key", own, "--senders", senders, "--revoked", revoked];
        Gateway::try_parse_from(words).unwrap().keys.served().unwrap()
    };
    assert_eq!(served(&[]), [one, two]);
    assert_eq!(served(&[KeyText::Public(one)]), [two]);
    assert_eq!(served(&[KeyText::Secret(secrets[1].clone())]), [one], "either half of a pair");
    assert_eq!(served(&[KeyText::Public(one), KeyText::Public(two)]), []);
}
