//! Pages as headless Chromium shows them: the document after its scripts have run, pictures, and
//! what a script says of it.
//!
//! A page that can test itself writes `answer ` and JSON to the console; [`Browser::answer`] waits
//! for that in real time, so that pictures, clicks and timers are those of a person's browser. For
//! a page that cannot, [`Browser::probe`] puts a script into a copy of it.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::debian::find_or_install;
use crate::netns::{Farewell, mortal};

/// A browser.
#[derive(Debug)]
pub struct Browser {
    program: PathBuf,
}

/// Which colours a page is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The page.
    pub file: &'a Path,
    /// What follows the `#`; may be empty.
    pub fragment: &'a str,
    /// Width and height of the window in CSS pixels.
    pub size: (u32, u32),
    /// Which colours are asked for.
    pub scheme: Scheme,
}

/// What a page has said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The JSON behind `answer `.
    pub json: String,
    /// What else was written to the console, errors that nobody caught included.
    pub console: Vec<String>,
}

/// Whoever takes longer than this to answer does not answer: a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(120);
/// Milliseconds of the page's own time that scripts have before a page is taken as it is.
const VIRTUAL_TIME: &str = "8000";

impl Browser {
    /// Chromium's headless shell, installed if we may. `None`, and said, without.
    pub fn find() -> Option<Self> {
        let program = find_or_install("chromium-headless-shell", "chromium-headless-shell")?;
        find_or_install("setpriv", "util-linux")?;
        // Debian's is a script that waits for the browser; whoever kills the script leaves the
        // browser behind.
        let behind = PathBuf::from("/usr/lib/chromium/chromium-headless-shell");
        Some(Self { program: if behind.is_file() { behind } else { program } })
    }

    /// Waits until the page writes `answer ` and JSON to the console.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[track_caller]
    pub fn answer(&self, view: &View<'_>) -> Answer {
        // The debugging port, which nobody uses, keeps the shell from leaving.
        let mut shell = Shell(self.shell(view, &["--remote-debugging-port=0".into()]));
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
        let json = json.unwrap_or_else(|| panic!("{view:?} does not answer, and says {console:?}"));
        Answer { json, console }
    }

    /// What `script`, an expression, is once the page is loaded: JSON that it returns, or a promise
    /// of it.
    ///
    /// # Panics
    ///
    /// If no copy can be put beside the page, or it does not answer.
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

    /// The document as text, after scripts have run.
    ///
    /// # Panics
    ///
    /// If the browser fails.
    #[track_caller]
    pub fn dom(&self, view: &View<'_>) -> String {
        let shell =
            self.shell(view, &["--dump-dom".into(), format!("--virtual-time-budget={VIRTUAL_TIME}").into()]);
        let output = shell.wait_with_output().expect("the browser ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// A picture of the window, as PNG into `file`.
    ///
    /// # Panics
    ///
    /// If the browser fails.
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
        mortal(&self.program, Farewell::Kill)
            // Tests run as root, where its sandbox does not work, and see no page but ours.
            .args(["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"])
            .arg(format!("--window-size={width},{height}"))
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .args(more)
            .arg(url)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the browser starts")
    }
}

/// A browser that runs, until it is dropped or we are gone.
struct Shell(Child);

impl Shell {
    /// Ends it in a while, unless what this returns is dropped before.
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

/// A copy of a page; the file goes with it.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// What pages write to the console, out of what the browser writes to its standard error.
fn messages(lines: BufReader<ChildStderr>) -> impl Iterator<Item = String> {
    lines.lines().map_while(Result::ok).filter_map(|line| {
        let (_, message) = line.split_once(":CONSOLE:")?;
        let (_, message) = message.split_once("] \"")?;
        let (message, _) = message.rsplit_once("\", source: ")?;
        Some(message.to_owned())
    })
}
