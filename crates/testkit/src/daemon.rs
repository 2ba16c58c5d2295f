//! A program of ours that says on standard error where it listens, and goes on.

use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Limit on the time until an expected line comes. It guards against hanging and decides nothing.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Where a program may listen again after it has ended: any port of an address of the loop device
/// that only this process's tests have. A port of 127.0.0.1 that was free a moment ago may be that
/// of another program's connection by now.
pub fn home() -> String {
    let ip = match cfg!(target_os = "linux") {
        // All of 127/8 is the loop device there, and process numbers have 22 bits.
        true => Ipv4Addr::from(0x7f00_0001 | (std::process::id() & 0x3f_ffff) << 2),
        false => Ipv4Addr::LOCALHOST,
    };
    format!("{ip}:0")
}

/// A daemon that is killed when the test is over.
#[derive(Debug)]
pub struct Daemon {
    /// Its process.
    pub child: Child,
    /// The address after `listening on`.
    pub address: String,
    /// Lines of its standard error before it listened.
    pub preface: Vec<String>,
    /// The lines after it.
    lines: Receiver<String>,
}

impl Daemon {
    /// Starts a program and waits until it listens.
    pub fn spawn(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (tell, lines) = channel();
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let mut daemon = Self { child, address: String::new(), preface: Vec::new(), lines };
        let (preface, line) = daemon.until("listening on ");
        daemon.preface = preface;
        // In a JSON log the string ends behind the address.
        let address = line.split("listening on ").nth(1).expect("it says where");
        daemon.address = address.split('"').next().unwrap_or(address).to_owned();
        daemon
    }

    /// Waits for a line that contains `text`.
    #[track_caller]
    pub fn says(&self, text: &str) -> String {
        self.until(text).1
    }

    /// The next line that contains `text`, behind those before it.
    #[track_caller]
    fn until(&self, text: &str) -> (Vec<String>, String) {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return (said, line),
                Ok(line) => said.push(line),
                Err(_) => panic!("never said `{text}`: {said:?}"),
            }
        }
    }

    /// The next line, if it comes in time.
    pub fn line_within(&self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    /// Sends a signal such as `-INT`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let done = Command::new("kill").args([name, &id]).status().expect("a shell's kill");
        assert!(done.success());
    }

    /// Its exit code, and what it printed.
    pub fn ended(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().expect("it is ours").code();
        let mut out = String::new();
        let stdout = self.child.stdout.as_mut().expect("it is piped");
        stdout.read_to_string(&mut out).expect("the program writes text");
        (code, out)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
