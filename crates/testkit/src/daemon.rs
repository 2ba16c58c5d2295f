//! Runs a program of this workspace that prints where it listens, then keeps running.

use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Time limit for an expected line. It only guards against hanging; no test depends on it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An address on which a program can listen again after it has ended: any port of a loopback
/// address that only this process's tests use. On 127.0.0.1, a port that was free may be taken by
/// another program's connection before the restart.
pub fn home() -> String {
    let ip = match cfg!(target_os = "linux") {
        // All of 127/8 is the loopback device, and process numbers have 22 bits.
        true => Ipv4Addr::from(0x7f00_0001 | (std::process::id() & 0x3f_ffff) << 2),
        false => Ipv4Addr::LOCALHOST,
    };
    format!("{ip}:0")
}

/// A running program, which is killed when this is dropped.
#[derive(Debug)]
pub struct Daemon {
    /// Its process.
    pub child: Child,
    /// Address after `listening on`.
    pub address: String,
    /// Lines of its standard error before it listened.
    pub preface: Vec<String>,
    /// Later lines.
    lines: Receiver<String>,
}

impl Daemon {
    /// Starts a program and waits until it listens.
    pub fn spawn(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        // A thread reads standard error all the time, so that a full pipe never blocks the program.
        let (tell, lines) = channel();
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let mut daemon = Self { child, address: String::new(), preface: Vec::new(), lines };
        let (preface, line) = daemon.until("listening on ");
        daemon.preface = preface;
        // In a JSON log, a quotation mark follows the address.
        let address = line.split("listening on ").nth(1).expect("it says where");
        daemon.address = address.split('"').next().unwrap_or(address).to_owned();
        daemon
    }

    /// Waits for a line that contains `text` and returns it.
    #[track_caller]
    pub fn says(&self, text: &str) -> String {
        self.until(text).1
    }

    /// Returns the next line that contains `text`, and the lines before it.
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

    /// The next line, or `None` if none arrives within `patience`.
    pub fn line_within(&self, patience: Duration) -> Option<String> {
        self.lines.recv_timeout(patience).ok()
    }

    /// Sends a signal, named as in `-INT`.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let done = Command::new("kill").args([name, &id]).status().expect("a shell's kill");
        assert!(done.success());
    }

    /// Waits for its end, and returns its exit code and standard output.
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
