//! The buffers return however the command ends.

use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use anabranch_testkit::prng::Prng;

use super::{given, program, run, tune};

/// Waits.
fn pass(time: Duration) {
    let (_sender, receiver) = channel::<()>();
    let _ = receiver.recv_timeout(time);
}

/// Longest time until a command is ended.
const LONGEST: u64 = 400;
/// Tries until the settings must have returned, 10 ms each.
const PATIENCE: u32 = 1000;

#[test]
fn the_buffers_return_after_any_signal_at_any_moment() {
    let (kills, mut prng) = (given("KILLS", 6), Prng::new(given("SEED", 1)));
    let mut program = program();
    let before = program.all_settings();
    program.flood("a");
    program.flood("b");
    program.flood("d");
    let mut changed = 0;
    for kill in 0..kills {
        let state = tempfile::tempdir().expect("a folder");
        let pid = program.id().to_string();
        let mut command = tune(&state, &["--pid", &pid, "--unsent", "30 kB"]);
        let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
        let signal = ["KILL", "INT", "TERM"][(kill % 3) as usize];
        // Half of them at the beginning, when sockets are found.
        let longest = if prng.below(2) == 0 { 40 } else { LONGEST };
        let millis = prng.below(longest);
        pass(Duration::from_millis(millis));
        changed += u64::from(program.settings("c") != before[2]);
        let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.expect("a program").success());
        child.wait().expect("it is ours");
        // The guard needs a moment. The kernel tunes what is not locked again.
        let mut tries = 0;
        loop {
            let now = program.all_settings();
            let same = |name: usize| now[name][1..] == before[name][1..] && now[name][0] >= before[name][0];
            let left = std::fs::read_dir(state.path()).expect("a folder").count();
            if (0..4).all(same) && now[2..] == before[2..] && left == 0 {
                break;
            }
            tries += 1;
            let what = format!("{signal} after {millis} ms: {now:?}, {before:?}, {left} files");
            assert!(tries < PATIENCE, "{what}");
            pass(Duration::from_millis(10));
        }
    }
    println!("{kills} ends, {changed} of them after a change");
    assert!(changed * 3 > kills, "{changed} of {kills}");
}

/// If the guard is killed too, the next start restores.
#[test]
fn the_next_start_restores_what_nobody_has_restored() {
    let state = tempfile::tempdir().expect("a folder");
    let mut program = program();
    let before = program.all_settings();
    let pid = program.id().to_string();
    let mut child = tune(&state, &["--pid", &pid]).stderr(Stdio::null()).spawn().expect("it starts");
    let mut tries = 0;
    while program.settings("c") == before[2] {
        tries += 1;
        assert!(tries < PATIENCE, "it changes nothing");
        pass(Duration::from_millis(10));
    }
    // No other process tunes this process meanwhile.
    super::refused(&run(&state, &["--pid", &pid]), 2, &["already tunes process", "hint: stop it"]);
    // Nor one with another folder, such as that of another user.
    let other = tempfile::tempdir().expect("a folder");
    super::refused(&run(&other, &["--pid", &pid]), 2, &["another command tunes", "hint: stop it"]);
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let guard = std::fs::read_to_string(children).expect("it has children");
    for process in [guard.trim(), &child.id().to_string()] {
        let killed = Command::new("kill").args(["-s", "KILL", process]).status();
        assert!(killed.expect("a program").success());
    }
    child.wait().expect("it is ours");
    assert_ne!(program.all_settings(), before);
    let restored = run(&state, &["--restore", "--json"]);
    assert_eq!(restored.stdout, b"{\"closed\":0,\"locked\":0,\"restored\":4}\n");
    assert_eq!(program.all_settings(), before);
}
