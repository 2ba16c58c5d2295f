//! Pages as headless Chromium shows them: the document after its scripts have run, screenshots, and
//! results of scripts.
//!
//! A page that tests itself writes `answer ` and JSON to the console. [`Browser::answer`] waits for
//! that in real time, so that screenshots, clicks and timers behave as in a user's browser. For
//! other pages, [`Browser::probe`] adds a script to a copy of the page. [`Browser::visit`] loads a
//! page from a server, through a proxy.

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::debian::find_or_install;
use crate::netns::{Farewell, mortal};

/// A headless browser.
#[derive(Debug)]
pub struct Browser {
    program: PathBuf,
}

/// Colour scheme that the browser requests from a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// Dark text on a light background.
    Light,
    /// Light text on a dark background.
    Dark,
}

/// How to load a page.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The page.
    pub file: &'a Path,
    /// Text after `#` in the address; may be empty.
    pub fragment: &'a str,
    /// Width and height of the window in CSS pixels.
    pub size: (u32, u32),
    /// Requested colour scheme.
    pub scheme: Scheme,
}

/// Answer of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The JSON after `answer `.
    pub json: String,
    /// Other console messages, including uncaught errors.
    pub console: Vec<String>,
}

/// Time limit for an answer; generous, since a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// The debugging port is not used, but with it the shell does not exit by itself.
const STAYS: &str = "--remote-debugging-port=0";
/// Virtual time for scripts before the document is read, in milliseconds.
const VIRTUAL_TIME: &str = "8000";

impl Browser {
    /// Finds Chromium's headless shell, and installs it if permitted. Prints that the test is
    /// skipped and returns `None` otherwise.
    pub fn find() -> Option<Self> {
        let program = find_or_install("chromium-headless-shell", "chromium-headless-shell")?;
        find_or_install("setpriv", "util-linux")?;
        // Debian's `chromium` is a script that waits for the browser; killing the script would
        // leave the browser running. So start the browser itself.
        let behind = PathBuf::from("/usr/lib/chromium/chromium-headless-shell");
        Some(Self { program: if behind.is_file() { behind } else { program } })
    }

    /// Waits until the page writes `answer ` and JSON to the console.
    ///
    /// # Panics
    ///
    /// The page does not answer in time.
    #[track_caller]
    pub fn answer(&self, view: &View<'_>) -> Answer {
        awaited(self.shell(view, &[STAYS.into()]), view)
    }

    /// Loads a page from a server through a proxy, such as `socks5://127.0.0.1:1080`, and waits for
    /// its answer.
    ///
    /// # Panics
    ///
    /// The page does not answer in time.
    #[track_caller]
    pub fn visit(&self, url: &str, proxy: &str) -> Answer {
        awaited(self.start(&[STAYS, &format!("--proxy-server={proxy}")], url), &url)
    }

    /// Evaluates `script`, an expression that returns JSON or a promise of JSON, after the page has
    /// loaded.
    ///
    /// # Panics
    ///
    /// The copy cannot be written beside the page, or the page does not answer.
    #[track_caller]
    pub fn probe(&self, view: &View<'_>, script: &str) -> Answer {
        let page = fs::read_to_string(view.file).expect("a page");
        let name = format!("probe-{}-{}", std::process::id(), view.size.0);
        let copy = Copy(view.file.with_extension(format!("{name}.html")));
        let asks = format!(
            "<script>addEventListener('load', async () => \
             console.log('answer ' + JSON.stringify(await ({script}))));</script>"
        );
        let page = match page.rsplit_once("</body>") {
            Some((before, after)) => format!("{before}{asks}</body>{after}"),
            None => page + &asks,
        };
        fs::write(&copy.0, page).expect("a place beside the page");
        self.answer(&View { file: &copy.0, ..*view })
    }

    /// The document as text, after its scripts have run.
    ///
    /// # Panics
    ///
    /// The browser fails.
    #[track_caller]
    pub fn dom(&self, view: &View<'_>) -> String {
        let shell =
            self.shell(view, &["--dump-dom".into(), format!("--virtual-time-budget={VIRTUAL_TIME}").into()]);
        let output = shell.wait_with_output().expect("the browser ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Writes a screenshot of the window to `file`, as PNG.
    ///
    /// # Panics
    ///
    /// The browser fails.
    #[track_caller]
    pub fn picture(&self, view: &View<'_>, file: &Path) {
        let mut place = OsString::from("--screenshot=");
        place.push(file);
        let shell = self.shell(view, &[place, format!("--virtual-time-budget={VIRTUAL_TIME}").into()]);
        let output = shell.wait_with_output().expect("the browser ends");
        assert!(file.is_file(), "no picture: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn shell(&self, view: &View<'_>, more: &[OsString]) -> Child {
        let (width, height) = view.size;
        let scheme = match view.scheme {
            Scheme::Dark => 0,
            Scheme::Light => 1,
        };
        let file = view.file.canonicalize().expect("the page is there");
        let mut url = OsString::from("file://");
        url.push(file);
        if !view.fragment.is_empty() {
            url.push(format!("#{}", view.fragment));
        }
        let mut options: Vec<OsString> = vec![
            "--hide-scrollbars".into(),
            format!("--window-size={width},{height}").into(),
            format!("--blink-settings=preferredColorScheme={scheme}").into(),
        ];
        options.extend_from_slice(more);
        self.start(&options, url)
    }

    fn start(&self, options: &[impl AsRef<OsStr>], url: impl AsRef<OsStr>) -> Child {
        mortal(&self.program, Farewell::Kill)
            // Tests run as root, for which Chromium's sandbox does not work; they load only their
            // own pages.
            .args(["--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
            .args(options)
            .arg(url)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the browser starts")
    }
}

/// The answer of the page that this browser loads.
#[track_caller]
fn awaited(shell: Child, page: &impl Debug) -> Answer {
    let mut shell = Shell(shell);
    let lines = shell.0.stderr.take().map(BufReader::new).expect("it was asked for");
    let overdue = shell.kill_later();
    let mut console = Vec::new();
    let json = messages(lines).find_map(|message| match message.strip_prefix("answer ") {
        Some(json) => Some(json.to_owned()),
        None => {
            console.push(message);
            None
        }
    });
    drop(overdue);
    let json = json.unwrap_or_else(|| panic!("{page:?} does not answer, and says {console:?}"));
    Answer { json, console }
}

/// A running browser, which ends when this is dropped or the test process ends.
struct Shell(Child);

impl Shell {
    /// Kills the browser after the time limit, unless the returned sender is dropped earlier.
    fn kill_later(&self) -> std::sync::mpsc::Sender<()> {
        let (sender, dropped) = std::sync::mpsc::channel::<()>();
        let process = self.0.id().to_string();
        std::thread::spawn(move || {
            if dropped.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").arg(process).status();
            }
        });
        sender
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A copy of a page; the file is removed on drop.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Extracts the console messages of pages from the browser's standard error.
fn messages(lines: BufReader<ChildStderr>) -> impl Iterator<Item = String> {
    lines.lines().map_while(Result::ok).filter_map(|line| {
        let (_, message) = line.split_once(":CONSOLE:")?;
        let (_, message) = message.split_once("] \"")?;
        let (message, _) = message.rsplit_once("\", source: ")?;
        Some(message.to_owned())
    })
}
