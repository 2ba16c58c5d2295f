//! `--metrics`: counters over HTTP for a monitoring system (`/metrics`), and the state of health
//! for a supervisor (`/healthz`).
//!
//! The page has the text exposition format of Prometheus, version 0.0.4. The server answers GET and
//! HEAD for two paths, one request per connection (RFC 9112); that is too little to justify an HTTP
//! library in a program for border routers.

use std::fmt::{Display, Write};
use std::net::IpAddr;
use std::time::Duration;

use anabranch_net::set::RefusedCounters;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet, yield_now};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::log::Entry;
use crate::service;

/// Default port of `--metrics`.
pub const PORT: u16 = 47_202;
/// Limit on concurrent connections. Beyond it, a new one replaces an old one: see [`Callers`].
const CALLERS: usize = 8;
/// Time limit for reading a request, and for writing the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Limit on the length of a request, in bytes.
const REQUEST: usize = 4 << 10;
/// Pause after an error of the listener, for example when the process has no descriptors left.
/// Without it the accept loop would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A page of metrics.
#[derive(Debug, Default)]
pub struct Page(String);

/// Kind of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Grows until a restart.
    Counter,
    /// Can grow and shrink.
    Gauge,
}

impl Page {
    /// Creates a page with the metrics that every process has.
    pub fn of_process() -> Self {
        let mut page = Self::default();
        page.family("anabranch_build_info", Kind::Gauge, "The program's version; always 1.");
        page.sample("anabranch_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        // The names are those that the Prometheus client libraries use.
        if let Some(open) = open_descriptors() {
            page.value("process_open_fds", Kind::Gauge, "Number of open file descriptors.", open);
        }
        if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
            page.value("process_max_fds", Kind::Gauge, "Limit on open file descriptors.", limit);
        }
        if let Some(bytes) = resident_bytes() {
            page.value("process_resident_memory_bytes", Kind::Gauge, "Resident memory in bytes.", bytes);
        }
        page
    }

    /// Starts a family of samples.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample to the last family.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        // No label here contains a quote, a backslash or a line end, so nothing is escaped.
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{}}} {value}", labels.join(",")),
        };
    }

    /// Adds a family with one sample.
    pub fn value(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Adds a counter with one sample per value of `label`.
    pub fn counters(&mut self, name: &str, help: &str, label: &str, samples: &[(&str, u64)]) {
        self.family(name, Kind::Counter, help);
        samples.iter().for_each(|(which, count)| self.sample(name, &[(label, which)], count));
    }

    /// Adds the counters of refused connections, and of log lines that were suppressed.
    pub(crate) fn refusals(&mut self, refused: &RefusedCounters, suppressed: u64) {
        let help = "Connections reset because of invalid data or a refusal, by reason.";
        self.counters("anabranch_refused_total", help, "reason", &refused.by_reason());
        let help = "Log lines that the rate limit left out.";
        self.value("anabranch_log_lines_suppressed_total", Kind::Counter, help, suppressed);
    }
}

fn open_descriptors() -> Option<usize> {
    // Reading the folder opens a descriptor, which is not counted.
    std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1))
}

/// Resident memory in bytes: the second number of `/proc/self/statm`, in pages (proc_pid_statm(5)).
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Listener of `--metrics`; `None` without the option.
#[derive(Debug)]
pub struct Metrics(Option<TcpListener>);

impl Metrics {
    /// Listens at `endpoint`. Must be called on a runtime.
    ///
    /// # Errors
    /// The name does not resolve, or the address is not available.
    pub async fn bind(endpoint: Option<&Endpoint>) -> Result<Self, Error> {
        let Some(endpoint) = endpoint else { return Ok(Self(None)) };
        let address = endpoint.resolve(PORT)?;
        let listener = TcpListener::bind(address).await.map_err(|e| service::cannot_listen(address, &e))?;
        Ok(Self(Some(listener)))
    }

    /// Logs the address at which it listens.
    pub fn announce(&self) {
        if let Some(Ok(address)) = self.0.as_ref().map(TcpListener::local_addr) {
            Entry::info("metrics", format!("metrics on http://{address}/metrics")).write();
        }
    }

    /// Answers requests until it is dropped. `page` makes `/metrics`; `health` makes `/healthz`,
    /// with an error if the program cannot do its work.
    pub async fn serve(&self, page: impl Fn() -> Page, health: impl Fn() -> Result<(), String>) {
        let Some(listener) = &self.0 else { return std::future::pending().await };
        // Pages are made on this task, so the spawned tasks only wait for their sockets.
        let mut asking = JoinSet::<Result<Option<Asked>, Elapsed>>::new();
        let mut answering = JoinSet::new();
        let mut callers = Callers::default();
        loop {
            tokio::select! {
                // Answer a caller with a complete request before a new caller can replace it.
                biased;
                Some(asked) = asking.join_next() => {
                    let Ok(Ok(Some((stream, host, request)))) = asked else { continue };
                    let answer = answer(&request, &page, &health);
                    callers.add(host, answering.spawn(timeout(PATIENCE, say(stream, answer))));
                }
                Some(_) = answering.join_next() => {}
                called = listener.accept() => match called {
                    Ok((stream, peer)) => {
                        let host = peer.ip();
                        callers.add(host, asking.spawn(timeout(PATIENCE, ask(stream, host))));
                        // Let the replaced caller's task end, and the new one read what has already
                        // arrived, before the next accept.
                        yield_now().await;
                    }
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
            }
        }
    }
}

/// A caller with a complete request: its connection, host and request.
type Asked = (TcpStream, IpAddr, Vec<u8>);

/// Callers being served, oldest first.
#[derive(Debug, Default)]
struct Callers(Vec<(IpAddr, AbortHandle)>);

impl Callers {
    /// Adds a caller. If all places are taken, the oldest caller of the host with the most callers
    /// is closed. So silent callers delay no other caller, and a host with many callers loses its
    /// own first.
    fn add(&mut self, host: IpAddr, task: AbortHandle) {
        self.0.retain(|(_, task)| !task.is_finished());
        self.0.push((host, task));
        if self.0.len() > CALLERS {
            let count = |host: IpAddr| self.0.iter().filter(|(other, _)| *other == host).count();
            // The new caller counts as well: if its host has the most callers, one of them gives
            // way.
            let most = self.0.iter().map(|(host, _)| count(*host)).max();
            let oldest = self.0.iter().position(|(host, _)| Some(count(*host)) == most);
            // The vector is not empty, so an oldest caller exists.
            if let Some(at) = oldest {
                self.0.remove(at).1.abort();
            }
        }
    }
}

/// Reads the head of a request, up to the length limit.
async fn ask(mut stream: TcpStream, host: IpAddr) -> Option<Asked> {
    let mut request = Vec::new();
    while request.len() < REQUEST && !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut octets = [0; 1024];
        match stream.read(&mut octets).await {
            Ok(n @ 1..) => request.extend_from_slice(&octets[..n]),
            _ => return None,
        }
    }
    Some((stream, host, request))
}

async fn say(mut stream: TcpStream, answer: String) {
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// The complete answer to a request.
fn answer(request: &[u8], page: &impl Fn() -> Page, health: &impl Fn() -> Result<(), String>) -> String {
    let head = std::str::from_utf8(request).unwrap_or_default();
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let is_http = version.is_some_and(|version| version.starts_with("HTTP/1.")) && words.next().is_none();
    let (status, body) = match (method, target.map(|target| target.split('?').next().unwrap_or(target))) {
        _ if !is_http => ("400 Bad Request", "not an HTTP/1.1 request\n".to_owned()),
        _ if !head.contains("\r\n\r\n") => {
            ("431 Request Header Fields Too Large", format!("a request has at most {REQUEST} bytes\n"))
        }
        (Some("GET" | "HEAD"), Some("/metrics")) => ("200 OK", page().0),
        (Some("GET" | "HEAD"), Some("/healthz")) => match health() {
            Ok(()) => ("200 OK", "ok\n".to_owned()),
            Err(why) => ("503 Service Unavailable", why + "\n"),
        },
        (Some("GET" | "HEAD"), _) => {
            ("404 Not Found", "not found: the paths are /metrics and /healthz\n".to_owned())
        }
        _ => ("405 Method Not Allowed", "GET and HEAD only\n".to_owned()),
    };
    let mut answer = format!("HTTP/1.1 {status}\r\n");
    let _ = write!(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    let _ = write!(answer, "Content-Length: {}\r\nConnection: close\r\n", body.len());
    if status.starts_with("405") {
        answer.push_str("Allow: GET, HEAD\r\n");
    }
    answer.push_str("\r\n");
    if method != Some("HEAD") {
        answer.push_str(&body);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a flooded port, the oldest caller of the flooding host is replaced first.
    #[test]
    fn a_caller_without_a_place_takes_that_of_the_oldest_caller_of_the_host_with_the_most() {
        crate::service::runtime().unwrap().block_on(async {
            let (alone, many) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
            let mut tasks = JoinSet::new();
            let mut callers = Callers::default();
            for host in [alone].into_iter().chain([many; 2 * CALLERS]) {
                callers.add(host, tasks.spawn(std::future::pending::<()>()));
                assert!(callers.0.len() <= CALLERS);
                assert_eq!(callers.0[0].0, alone);
            }
            for _ in 0..=CALLERS {
                yield_now().await;
            }
            let closed = std::iter::from_fn(|| tasks.try_join_next()).filter(Result::is_err).count();
            assert_eq!((closed, tasks.len()), (CALLERS + 1, CALLERS));
        });
    }

    fn said(request: &str) -> String {
        let page = || {
            let mut page = Page::default();
            page.value("x_total", Kind::Counter, "Xs.", 7);
            page.counters("y_total", "Ys.", "kind", &[("a", 1), ("b", 2)]);
            page
        };
        answer(request.as_bytes(), &page, &|| Err("no space".to_owned()))
    }

    #[test]
    fn a_request_gets_its_page_and_anything_else_a_status() {
        for (request, status) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK"),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 OK"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "200 OK"),
            ("GET /healthz HTTP/1.1\r\n\r\n", "503 Service Unavailable"),
            ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("GET /../etc/passwd HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
            ("GET /metrics\r\n\r\n", "400 Bad Request"),
            ("GET /metrics HTTP/2\r\n\r\n", "400 Bad Request"),
            ("GET /metrics HTTP/1.1 x\r\n\r\n", "400 Bad Request"),
            ("\u{0}\u{1}\u{2}\r\n\r\n", "400 Bad Request"),
            ("GET /metrics HTTP/1.1\r\nX: ", "431 Request Header Fields Too Large"),
        ] {
            let said = said(request);
            assert!(said.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request:?}: {said}");
            let (head, body) = said.split_once("\r\n\r\n").unwrap();
            let length: usize =
                head.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap().parse().unwrap();
            assert!(body.len() == length || request.starts_with("HEAD") && body.is_empty(), "{said}");
        }
        let page = said("GET /metrics HTTP/1.1\r\n\r\n");
        let (_, body) = page.split_once("\r\n\r\n").unwrap();
        let expected = "# HELP x_total Xs.\n# TYPE x_total counter\nx_total 7\n\
            # HELP y_total Ys.\n# TYPE y_total counter\ny_total{kind=\"a\"} 1\ny_total{kind=\"b\"} 2\n";
        assert_eq!(body, expected);
    }
}
