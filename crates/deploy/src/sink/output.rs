//! Where records go: a file, standard output, a command, or a broker. One thread or task writes
//! them and then reports them as stored.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_net::rdca::Intake;
use tokio::sync::oneshot;

use super::line;
use super::mqtt::{self, Broker};
use super::state::State;
use super::target::Target;
use crate::error::Error;
use crate::files::{is_in_place, open_in_place};
use crate::log::Entry;
use crate::service;

/// The thread that writes.
#[derive(Debug)]
pub(super) struct Writer {
    thread: JoinHandle<Result<(), Error>>,
    /// Is closed when the thread ends.
    works: Receiver<()>,
}

impl Writer {
    /// Waits until everything that was taken is written, but at most `longest`: a broker may be
    /// away, and a command may hang. What is not written then was not confirmed, so senders keep
    /// it.
    pub(super) fn join(self, longest: Duration) -> Result<(), Error> {
        if self.works.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
            let message = format!("the output has not taken all records within {} s", longest.as_secs());
            Entry::warning("output", message).hinted("senders keep them, and send them again").write();
            return Ok(());
        }
        self.thread.join().unwrap_or_else(|_| Err(Error::job("the output's thread has panicked")))
    }
}

/// Starts to write. `reopened` says that the output may have been moved, and `give_up` learns that
/// the writer has failed; [`Writer::join`] returns why.
pub(super) fn start(
    target: Target,
    state: State,
    intake: Intake,
    reopened: Receiver<()>,
    give_up: oneshot::Sender<()>,
) -> Result<Writer, Error> {
    let mut stream = match &target {
        Target::Broker(_) => None,
        target => Some(Stream::open(target)?),
    };
    let (ends, works) = channel();
    let work = move || {
        let _ends: Sender<()> = ends;
        let done = match (target, &mut stream) {
            (Target::Broker(broker), _) => publish(&broker, state, intake),
            (_, Some(stream)) => write(stream, state, intake, &reopened),
            (_, None) => Ok(()),
        };
        let done = done.and_then(|()| stream.map_or(Ok(()), Stream::close));
        if done.is_err() {
            // A sink that has ended meanwhile needs no notice.
            let _ = give_up.send(());
        }
        done
    };
    let thread = thread::Builder::new().name("output".to_owned()).spawn(work);
    let thread = thread.map_err(|e| Error::missing(format!("cannot start a thread: {e}")))?;
    Ok(Writer { thread, works })
}

fn write(
    stream: &mut Stream,
    mut state: State,
    mut intake: Intake,
    reopened: &Receiver<()>,
) -> Result<(), Error> {
    let mut text = Vec::new();
    while let Some(taken) = intake.take() {
        if reopened.try_iter().count() > 0 {
            state.reopen()?;
        }
        text.clear();
        taken.items.iter().for_each(|item| line::write(item, &mut text));
        stream.write(&text)?;
        if !taken.items.is_empty() {
            state.note(&taken.items, &text)?;
        }
        intake.stored(taken);
    }
    state.write_snapshot()
}

/// Publishes on a runtime of this thread.
fn publish(broker: &Broker, mut state: State, mut intake: Intake) -> Result<(), Error> {
    service::runtime()?.block_on(async {
        let mut session = mqtt::Session::new(broker);
        while let Some(taken) = session.idle_until(intake.next()).await {
            session.publish(&taken.items).await;
            if !taken.items.is_empty() {
                state.note(&taken.items, &[])?;
            }
            intake.stored(taken);
        }
        state.write_snapshot()
    })
}

/// A stream that takes lines.
enum Stream {
    /// The state writes the file.
    State,
    File(File, PathBuf),
    Standard,
    Command(Child, String),
}

impl Stream {
    fn open(target: &Target) -> Result<Self, Error> {
        match target {
            Target::File(path) if is_in_place(path) => {
                let file = open_in_place(path).map_err(|e| Error::unwritable(path, &e))?;
                Ok(Self::File(file, path.clone()))
            }
            Target::File(_) | Target::Broker(_) => Ok(Self::State),
            Target::Standard => Ok(Self::Standard),
            Target::Command(command) => {
                let child = Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn();
                let child = child.map_err(|e| Error::missing(format!("cannot start `{command}`: {e}")))?;
                Ok(Self::Command(child, command.clone()))
            }
        }
    }

    fn write(&mut self, text: &[u8]) -> Result<(), Error> {
        match self {
            Self::State => Ok(()),
            Self::File(file, path) => file.write_all(text).map_err(|e| Error::unwritable(path, &e)),
            Self::Standard => {
                let mut out = io::stdout().lock();
                out.write_all(text).and_then(|()| out.flush()).map_err(|error| match error.kind() {
                    io::ErrorKind::BrokenPipe => {
                        let message = "the reader of standard output has closed it; the sink ends";
                        Entry::info("ended", message).hinted("senders keep what is not confirmed").write();
                        Error::Pipe
                    }
                    _ => Error::job(format!("cannot write to standard output: {error}")),
                })
            }
            Self::Command(child, command) => {
                let input = child.stdin.as_mut().expect("it is piped, and closed by `close` only");
                input.write_all(text).and_then(|()| input.flush()).map_err(|e| {
                    Error::job(format!("`{command}` takes no more records: {e}"))
                        .with_hint("senders keep what it has not taken; start the sink again")
                })
            }
        }
    }

    /// Ends the stream, and waits for a command to end.
    fn close(self) -> Result<(), Error> {
        let Self::Command(mut child, command) = self else { return Ok(()) };
        drop(child.stdin.take());
        let status = child.wait().map_err(|e| Error::job(format!("cannot wait for `{command}`: {e}")))?;
        if status.success() { Ok(()) } else { Err(Error::job(format!("`{command}` failed: {status}"))) }
    }
}
