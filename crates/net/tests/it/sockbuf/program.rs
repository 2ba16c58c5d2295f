//! Sockets of a program that knows nothing of the tuner.

use std::io::Read;
use std::net::TcpListener;

use anabranch_core::sockbuf;
use anabranch_core::time::Duration;
use anabranch_net::buffers::{LEAST_SEND_BUFFER, set_receive_buffer};
use anabranch_net::clock::Clock;
use anabranch_net::sockbuf::{AddError, Process, ProgramConfig, ProgramTuner, Restored, Saved, restore};
use anabranch_testkit::python::Program;

/// A program whose peer reads nothing, so that what it sends stays in its queues.
fn started() -> Program {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    set_receive_buffer(&listener, 20_000).expect("a socket");
    Program::start(&listener)
}

fn tuner(program: &Program, clock: Clock) -> ProgramTuner {
    let config = ProgramConfig { unsent_mark: Some(50_000), ..config(2_000_000) };
    let process = Process::open(program.id()).expect("it is our child");
    ProgramTuner::new(clock.now(), config, vec![process]).expect("room for some")
}

fn config(threshold: u64) -> ProgramConfig {
    ProgramConfig::new(sockbuf::Config { threshold, ..sockbuf::Config::default() })
}

/// Steps until `done`. Returns what would restore the sockets.
#[track_caller]
fn step(tuner: &mut ProgramTuner, clock: Clock, done: impl Fn(&ProgramTuner) -> bool) -> Vec<Saved> {
    let mut last = Vec::new();
    let patience = clock.now() + Duration::from_secs(60);
    loop {
        let kept = |saved: &[Saved]| {
            last = saved.to_vec();
            Ok(())
        };
        tuner.step(clock.now(), kept).expect("it is saved");
        if done(tuner) {
            return last;
        }
        assert!(clock.now() < patience, "{:?}", tuner.population());
    }
}

#[test]
fn sockets_get_shares_when_they_send_and_their_settings_return() {
    let (clock, mut program) = (Clock::start(), started());
    let before = program.all_settings();
    assert_eq!((&before[0][1..], before[3]), (&[0, 0][..], [60_000, 1, 0]), "{before:?}");
    let mut tuner = tuner(&program, clock);
    step(&mut tuner, clock, |tuner| tuner.population().found == 4);
    assert_eq!(tuner.population().idle, 4);
    for settings in program.all_settings() {
        assert_eq!(settings, [LEAST_SEND_BUFFER, 1, 50_000]);
    }
    // One sender is a connection of its own; a second one from another address makes it striped.
    program.fill("a");
    step(&mut tuner, clock, |tuner| tuner.population().active == 1);
    assert!(tuner.sockets().all(|socket| !socket.striped));
    program.fill("b");
    step(&mut tuner, clock, |tuner| tuner.population().active == 2);
    assert!(tuner.sockets().all(|socket| socket.striped && socket.peer.ip().is_loopback()));
    let limits: u64 = tuner.sockets().map(|socket| socket.flow.limit).sum();
    assert_eq!(limits, program.settings("a")[0] + program.settings("b")[0]);
    assert!(limits > 3 * LEAST_SEND_BUFFER && tuner.memory().0 <= 2_000_000, "{:?}", tuner.memory());
    // The program's own choice is the one to restore.
    program.say("c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)");
    program.say("b.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 25_000)");
    tuner.step(clock.now(), |_| Ok(())).expect("nothing to save");
    assert_eq!(program.settings("c")[0], LEAST_SEND_BUFFER);
    // Its peer sees at once that the program closes a socket, and a socket that the program dupli-
    // cates stays the same.
    program.say("b2 = b.dup()");
    program.say("b.close(); b = b2");
    program.say("a.close()");
    let mut octets = Vec::new();
    program.far[0].read_to_end(&mut octets).expect("it ends");
    assert!(!octets.is_empty());
    step(&mut tuner, clock, |tuner| tuner.population().active == 1);
    let restored = tuner.restore();
    assert_eq!((restored.locked, restored.sockets), (0, 3), "{restored:?}");
    assert_eq!(program.settings("b"), [50_000, 1, 0]);
    assert_eq!([program.settings("c"), program.settings("d")], [[40_000, 1, 0], before[3]]);
}

#[test]
fn another_process_restores_what_a_killed_tuner_has_left() {
    let (clock, mut program) = (Clock::start(), started());
    let before = program.all_settings();
    let mut tuner = tuner(&program, clock);
    let mut saved = step(&mut tuner, clock, |tuner| tuner.population().found == 4);
    program.fill("a");
    step(&mut tuner, clock, |tuner| tuner.population().active == 1);
    drop(tuner);
    assert_ne!(program.all_settings(), before);
    // Other sockets of the process are left alone.
    let other: Vec<_> = saved.iter().map(|s| Saved { cookie: s.cookie + (1 << 40), ..*s }).collect();
    assert_eq!(restore(&other), Restored { closed: 4, ..Restored::default() });
    saved.push(Saved { cookie: u64::MAX, ..saved[0] });
    assert_eq!(restore(&saved), Restored { sockets: 4, closed: 1, locked: 0 });
    assert_eq!(program.all_settings(), before);
}

#[test]
fn sockets_that_another_process_still_has_are_restored() {
    let (clock, mut program) = (Clock::start(), started());
    let before = program.all_settings();
    // A child with the same sockets is managed, and closes the first one when told.
    let start = |program: &mut Program| {
        program.say("import subprocess; fds = [s.fileno() for s in (a, b, c, d)]");
        program.say("script = f'read x; exec {fds[0]}<&-; echo closed; exec sleep 60'");
        program.say("pipe = subprocess.PIPE");
        program.say("p = subprocess.Popen(['sh', '-c', script], stdin=pipe, stdout=pipe, pass_fds=fds)");
        let pid = program.say("p.pid").parse().expect("a number");
        let config = ProgramConfig { unsent_mark: Some(50_000), ..config(2_000_000) };
        let process = Process::open(pid).expect("it is a child of our child");
        let mut tuner = ProgramTuner::new(clock.now(), config, vec![process]).expect("room for some");
        let saved = step(&mut tuner, clock, |tuner| tuner.population().found == 4);
        (tuner, saved)
    };
    let (mut tuner, _) = start(&mut program);
    assert_eq!(program.settings("a"), [LEAST_SEND_BUFFER, 1, 50_000]);
    program.say("p.stdin.write(b'\\n'), p.stdin.flush(), p.stdout.readline()");
    let patience = clock.now() + Duration::from_secs(60);
    while program.settings("a") != before[0] {
        assert!(clock.now() < patience);
        tuner.step(clock.now(), |_| Ok(())).expect("nothing to save");
    }
    assert_eq!(program.settings("b")[0], LEAST_SEND_BUFFER);
    program.say("p.kill(), p.wait()");
    assert!(!tuner.is_needed());
    assert_eq!(tuner.restore(), Restored { sockets: 3, ..Restored::default() });
    assert_eq!(program.all_settings(), before);
    // The tuner is killed, and then the child.
    let (tuner, saved) = start(&mut program);
    drop(tuner);
    program.say("p.kill(), p.wait()");
    assert_eq!(restore(&saved), Restored { sockets: 4, ..Restored::default() });
    assert_eq!(program.all_settings(), before);
}

#[test]
fn nothing_changes_before_it_is_saved() {
    let (clock, mut program) = (Clock::start(), started());
    let before = program.all_settings();
    let mut tuner = tuner(&program, clock);
    assert!(tuner.step(clock.now(), |_| Err(std::io::ErrorKind::StorageFull.into())).is_err());
    assert_eq!((program.all_settings(), tuner.population().found), (before, 0));
    step(&mut tuner, clock, |tuner| tuner.population().found == 4);
}

#[test]
fn what_is_no_process_and_what_is_no_budget() {
    for pid in [0, u32::MAX, 1 << 30] {
        assert_eq!(Process::open(pid).unwrap_err().kind(), std::io::ErrorKind::NotFound, "{pid}");
    }
    let mut program = started();
    let clock = Clock::start();
    let process = || Process::open(program.id()).expect("it is our child");
    let small = ProgramTuner::new(clock.now(), config(200_000), vec![process()]);
    assert!(matches!(small, Err(AddError::Full { budget: 200_000, .. })));
    let mut tuner = ProgramTuner::new(clock.now(), config(280_000), vec![process()]).expect("room for one");
    step(&mut tuner, clock, |tuner| tuner.population().found == 4);
    // The second sender has no share: it keeps the smallest buffer.
    ["a", "b"].iter().for_each(|name| program.fill(name));
    step(&mut tuner, clock, |tuner| tuner.population().crowded == 1);
    assert_eq!(tuner.population().active, 1);
    assert!(tuner.is_needed());
    program.end();
    assert!(!tuner.is_needed());
    step(&mut tuner, clock, |tuner| tuner.population().active + tuner.population().idle == 0);
}
