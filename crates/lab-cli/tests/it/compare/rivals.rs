//! Today's tools beside SET over the mesh of scenarios/rivals, by the recipes that readers run.

use std::env;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anabranch_stats::quantile;
use anabranch_testkit::debian::{find_or_install, skipped};
use anabranch_testkit::netns::{self, Broom, Farewell, mortal, text};
use serde_json::Value;

use super::emulated::{LATE, Repeated, frames, program, with_set};
use super::table::{first_line, origin};
use super::{number, publish, side_by_side};

/// Size of the recipes' file in bytes, as the recipes spell it.
const FILE: &str = "380000";
const KBIT: f64 = 380.0 * 8.0;
/// Size in the short form of the test.
const SMALL: &str = "4000";
const MESH: &str = "scenarios/rivals/mesh.toml";
/// Limit on the duration of a run; the slowest transfer that was seen took less than 4 minutes.
const PATIENCE: &str = "10 min";

/// A recipe of scenarios/rivals/mesh.toml.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Tool {
    /// Its word in `[alias.tool]`.
    word: &'static str,
    /// What it needs in `PATH`.
    needs: &'static [&'static str],
    /// Whether it runs in border routers too.
    routers: bool,
}

const fn tool(word: &'static str, needs: &'static [&'static str]) -> Tool {
    Tool { word, needs, routers: false }
}

const fn set(word: &'static str) -> Tool {
    Tool { routers: true, ..tool(word, &[]) }
}

const SET: [Tool; 4] = [set("set"), set("set-1"), set("set-turns"), set("set-predictive")];
const OTHERS: [Tool; 8] = [
    tool("http", &["curl", "python3"]),
    tool("coap-put", &["coap-client-notls", "coap-server-notls"]),
    tool("coap-get", &["coap-client-notls", "coap-server-notls"]),
    tool("q-block-put", &["coap-client", "coap-server"]),
    tool("q-block-get", &["coap-client", "coap-server"]),
    tool("smp", &["python3"]),
    tool("tftp-1", &["atftp", "atftpd"]),
    tool("tftp-4", &["atftp", "atftpd"]),
];

const MACS: [&str; 2] = ["standard", "persistent"];

#[derive(Clone, Copy, PartialEq, Debug)]
struct Cell {
    tool: Tool,
    mac: &'static str,
    per_cent: u32,
}

/// A run of a recipe.
#[derive(Clone, PartialEq, Debug)]
struct Ran {
    /// Time of the transfer in seconds; `None` if it failed.
    took_s: Option<f64>,
    frames: f64,
    lag_s: f64,
}

impl Cell {
    fn run(&self, folders: &Folders, worker: usize, seed: u64) -> Ran {
        let folder = tempfile::tempdir().expect("a folder");
        // The recipes name the project's files from the root of the repository.
        symlink(folders.root.join("scenarios"), folder.path().join("scenarios")).expect("a link");
        let mesh = fs::read_to_string(folders.root.join(MESH)).expect("it is there");
        fs::write(folder.path().join("mesh.toml"), mesh.replace(FILE, folders.file)).expect("a file");
        let names = netns::name(&format!("r{worker}"));
        let _broom = Broom::new(["server", "target", "br1", "br2", "br3"].map(|end| format!("{names}{end}")));
        let mut settings = vec![
            "ends=kernel".to_owned(),
            format!("tool={}", self.tool.word),
            format!("mac={}", self.mac),
            format!("radio.loss={} %", self.per_cent),
            "emulation.congestion=cubic".to_owned(),
            format!("node.server.netns={names}server"),
            format!("node.target.netns={names}target"),
        ];
        if self.tool.routers {
            settings.extend(["routers=kernel".to_owned(), format!("nodes.br*.netns={names}br{{i}}")]);
        }
        let mut command = mortal(program(), Farewell::Interrupt);
        command.args(["emulate", "mesh.toml", "--json", "--for", PATIENCE]);
        command.args(["--seed", &seed.to_string()]).args(with_set(&settings));
        command.current_dir(folder.path()).env("PATH", &folders.path);
        let output = command.output().expect("the program starts");
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{self:?}: {error}: {}", text(&output.stderr)));
        let took_s = output.status.success().then(|| transfer(&report["commands"]));
        let lag_s = report["lag"]["p99_s"].as_f64().expect("a lag");
        Ran { took_s, frames: frames(&report["metrics"]), lag_s }
    }
}

/// Duration of the longest command that was waited for, without the second for which the recipes
/// wait until their daemons listen.
fn transfer(commands: &Value) -> f64 {
    let all = commands.as_array().expect("a list").iter().filter(|one| one["background"] == false);
    let took = all.map(|one| {
        let time = |key: &str| one[key].as_f64().expect("a time");
        let waits = one["command"].as_str().is_some_and(|command| command.contains("sleep 1;"));
        time("end_s") - time("start_s") - f64::from(u8::from(waits))
    });
    took.fold(0.0, f64::max)
}

/// Root of the repository, and `PATH` of the recipes.
struct Folders {
    root: PathBuf,
    path: OsString,
    /// Size of the file in bytes.
    file: &'static str,
    /// Other names of libcoap's programs.
    _names: tempfile::TempDir,
}

impl Folders {
    /// `LIBCOAP` names a folder with programs of a libcoap that has Q-Block. They replace Debian's.
    fn new(file: &'static str) -> Self {
        let names = tempfile::tempdir().expect("a folder");
        let mut path = vec![names.path().to_owned()];
        if let Some(libcoap) = env::var_os("LIBCOAP").map(PathBuf::from) {
            for program in ["coap-client", "coap-server"] {
                for name in [program.to_owned(), format!("{program}-notls")] {
                    symlink(libcoap.join(program), names.path().join(name)).expect("a link");
                }
            }
        }
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let path = env::join_paths(path).expect("no colon in a name");
        Self { root, path, file, _names: names }
    }

    fn has(&self, program: &str) -> bool {
        env::split_paths(&self.path).any(|folder| folder.join(program).is_file())
    }
}

/// Goodput in kbit/s: median, lowest and highest of the runs that succeeded, and how many failed.
fn goodput(runs: &[Ran]) -> String {
    let all: Vec<f64> = runs.iter().filter_map(|run| Some(KBIT / run.took_s?)).collect();
    let failed = runs.len() - all.len();
    let Some(median) = quantile(&all, 0.5) else { return format!("- ({failed} failed)") };
    let (low, high) =
        (all.iter().copied().fold(median, f64::min), all.iter().copied().fold(median, f64::max));
    let failed = if failed == 0 { String::new() } else { format!(", {failed} failed") };
    format!("{median:.1} ({low:.1} to {high:.1}{failed})")
}

fn page(macs: &[&str], losses: &[u32], rows: &[(Tool, Vec<Vec<Ran>>)], repeated: u32) -> String {
    let every = || rows.iter().flat_map(|(_, cells)| cells.iter().flatten());
    let runs = rows.iter().flat_map(|(_, cells)| cells).map(Vec::len).max().unwrap_or(0);
    let late = every().filter(|run| run.lag_s > LATE).count();
    let most = every().map(|run| run.lag_s).fold(0.0, f64::max);
    let mut page = format!(
        "{} Goodput of 380 kB in kbit/s: median of {runs} runs (lowest to highest). Largest 99th percentile of the \
         emulator's lag: {:.1} ms; {repeated} late runs were repeated, and {late} of those that count were late.\n\n",
        origin("Linux", &first_line("uname", &["-r"])),
        most * 1e3
    );
    page += "| tool |";
    for mac in macs {
        for loss in losses {
            let _ = write!(page, " `{mac}`, {loss} % |");
        }
    }
    let _ = writeln!(page, " frames, no loss |\n|{}", " --- |".repeat(macs.len() * losses.len() + 2));
    for (tool, cells) in rows {
        let _ = write!(page, "| `{}` |", tool.word);
        for runs in cells {
            let _ = write!(page, " {} |", goodput(runs));
        }
        let frames: Vec<f64> = cells[0].iter().map(|run| run.frames).collect();
        let _ = writeln!(page, " {:.0} |", quantile(&frames, 0.5).unwrap_or(f64::NAN));
    }
    page
}

#[test]
fn tools_of_today_move_a_file_beside_set() {
    let size = env::var("ANABRANCH_COMPARE").unwrap_or_default();
    if netns::skipped() {
        return;
    }
    if size.is_empty() {
        let folders = Folders::new(SMALL);
        let all_here = ["curl", "python3"].iter().all(|name| find_or_install(name, name).is_some());
        for tool in SET.into_iter().chain(OTHERS.into_iter().take(usize::from(all_here))) {
            let ran = Cell { tool, mac: "standard", per_cent: 0 }.run(&folders, 0, 1);
            assert!(ran.took_s.is_some_and(|took_s| took_s < 30.0), "{}: {ran:?}", tool.word);
        }
        return;
    }
    let folders = Folders::new(FILE);
    // A MAC, or a tool.
    let only = env::var("ANABRANCH_COMPARE_ONLY").ok();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let is_mac = MACS.iter().any(|mac| only.as_deref() == Some(*mac));
    let (tools, lacking): (Vec<Tool>, Vec<Tool>) = SET
        .into_iter()
        .chain(OTHERS)
        .filter(|tool| is_mac || wanted(tool.word))
        .partition(|tool| tool.needs.iter().all(|program| folders.has(program)));
    lacking.iter().for_each(|tool| skipped(&format!("{}: it needs {}", tool.word, tool.needs.join(", "))));
    let quick = size == "quick";
    let macs: Vec<&'static str> = MACS.into_iter().filter(|mac| !is_mac || wanted(mac)).collect();
    let losses: &[u32] = if quick { &[0] } else { &[0, 2, 10] };
    let runs = number("RUNS").unwrap_or(if quick { 1 } else { 20 }) as usize;
    let cells: Vec<Cell> = tools
        .iter()
        .flat_map(|tool| macs.iter().map(move |mac| (*tool, *mac)))
        .flat_map(|(tool, mac)| losses.iter().map(move |loss| Cell { tool, mac, per_cent: *loss }))
        .collect();
    let repeated = Repeated::default();
    // Runs of one cell are far from each other, so that a busy minute does not meet all of them.
    let ran = side_by_side(cells.len() * runs, number("AT_ONCE").unwrap_or(4) as usize, |job, worker| {
        let (cell, seed) = (&cells[job % cells.len()], (job / cells.len()) as u64 + 1);
        let ran = repeated.on_time(|| cell.run(&folders, worker, seed), |ran| ran.lag_s);
        eprintln!("{} {} {} % {seed}: {ran:?}", cell.tool.word, cell.mac, cell.per_cent);
        ran
    });
    let of_tool = macs.len() * losses.len();
    let rows = tools.iter().enumerate().map(|(at, tool)| {
        let of_cell = |cell: usize| ran.iter().skip(cell).step_by(cells.len()).cloned().collect();
        (*tool, (at * of_tool..(at + 1) * of_tool).map(of_cell).collect())
    });
    publish(&page(&macs, losses, &rows.collect::<Vec<_>>(), repeated.count()));
}

#[test]
fn a_median_counts_what_failed() {
    let ran = |took_s| Ran { took_s, frames: 0.0, lag_s: 0.0 };
    let runs = [ran(Some(100.0)), ran(None), ran(Some(80.0)), ran(Some(95.0))];
    assert_eq!(goodput(&runs), "32.0 (30.4 to 38.0, 1 failed)");
    assert_eq!(goodput(&runs[1..2]), "- (1 failed)");
    let commands = serde_json::json!([
        { "command": "head", "background": false, "start_s": 0.0, "end_s": 0.1 },
        { "command": "daemon", "background": true, "start_s": 0.1, "end_s": 99.0 },
        { "command": "sleep 1; send", "background": false, "start_s": 0.1, "end_s": 11.3 },
    ]);
    assert!((transfer(&commands) - 10.2).abs() < 1e-9);
}
