//! Parses pages and their code blocks.

use std::fs;
use std::path::Path;

/// How a block is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Commands after `$ ` with their output. `root`: root is needed. `long`: commands are started
    /// but not run to their end.
    Console { root: bool, long: bool },
    /// Commands for other machines, which are only parsed.
    Elsewhere,
    /// Commands that end with this exit code, with their standard error.
    Refused(i32),
    /// A scenario, stored under this name in the page's folder.
    Scenario(Option<String>),
    /// Tables of a scenario.
    Fragment,
    /// Options of this program: node, gateway or push.
    Config(String),
    /// A sweep, stored under this name in the page's folder.
    Sweep(String),
    /// Rust, which must be an included file that cargo builds.
    Rust,
    /// C for a program with the header of a C library.
    C,
    /// Python that runs in the tests of the package.
    Python,
    /// Output or a diagram, which is not checked.
    Text,
}

/// A code block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Page and line of the opening fence, for messages.
    pub(crate) place: String,
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// A page of the documentation.
pub(crate) struct Page {
    /// Path relative to the root.
    pub(crate) name: String,
    /// The page without its blocks.
    pub(crate) prose: String,
    pub(crate) blocks: Vec<Block>,
    /// Blocks without a kind, or with an unknown kind.
    pub(crate) faults: Vec<String>,
}

impl Page {
    pub(crate) fn read(root: &Path, name: String) -> Self {
        let text = fs::read_to_string(root.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self::of(name, &text)
    }

    fn of(name: String, text: &str) -> Self {
        let mut page = Self { name, prose: String::new(), blocks: Vec::new(), faults: Vec::new() };
        let mut lines = text.lines().enumerate();
        // Whether indented text here belongs to a list.
        let mut in_list = false;
        let mut before = "";
        while let Some((number, line)) = lines.next() {
            let Some(info) = line.trim_start().strip_prefix("```") else {
                page.prose += &format!("{line}\n");
                if line.starts_with("    ") && before.is_empty() && !in_list {
                    page.faults.push(format!(
                        "{}:{}: a block by its indent, without a language",
                        page.name,
                        number + 1
                    ));
                } else if !line.is_empty() && !line.starts_with(' ') {
                    in_list =
                        line.starts_with(['-', '*', '+', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
                }
                before = line.trim();
                continue;
            };
            let place = format!("{}:{}", page.name, number + 1);
            let mut closed = false;
            let mut text = String::new();
            for (_, line) in lines.by_ref() {
                closed = line.trim() == "```";
                if closed {
                    break;
                }
                text += &format!("{line}\n");
            }
            match kind(info.trim()) {
                Ok(kind) if closed => page.blocks.push(Block { place, kind, text }),
                Ok(_) => page.faults.push(format!("{place}: the block has no end")),
                Err(fault) => page.faults.push(format!("{place}: {fault}")),
            }
        }
        page
    }
}

/// Parses the text after the fence.
fn kind(info: &str) -> Result<Kind, String> {
    let (language, flags) = info.split_once(',').unwrap_or((info, ""));
    let (flag, value) = flags.split_once('=').unwrap_or((flags, ""));
    match (language, flag, value) {
        ("console", "", "") => Ok(Kind::Console { root: false, long: false }),
        ("console", "long", "") => Ok(Kind::Console { root: false, long: true }),
        ("console", "root", "") => Ok(Kind::Console { root: true, long: false }),
        ("console", "root,long" | "long,root", "") => Ok(Kind::Console { root: true, long: true }),
        ("console", "elsewhere", "") => Ok(Kind::Elsewhere),
        ("console", "exit", code) => {
            code.parse().map(Kind::Refused).map_err(|_| format!("`{code}` is no exit code"))
        }
        ("toml", "scenario", name) => Ok(Kind::Scenario((!name.is_empty()).then(|| name.to_owned()))),
        ("toml", "fragment", "") => Ok(Kind::Fragment),
        ("toml", "config", "node" | "gateway" | "push") => Ok(Kind::Config(value.to_owned())),
        ("toml", "sweep", name) if !name.is_empty() => Ok(Kind::Sweep(name.to_owned())),
        ("rust", "", "") => Ok(Kind::Rust),
        ("c", "", "") => Ok(Kind::C),
        ("python", _, _) => Ok(Kind::Python),
        ("text", "", "") => Ok(Kind::Text),
        ("", _, _) => Err("a block without a language; `text` is for output and diagrams".to_owned()),
        _ => Err(format!("nobody knows what to do with `{info}`: see CONTRIBUTING.md")),
    }
}

#[test]
fn blocks_are_found_and_understood() {
    let text = "# A\n\n    code\n\n1. c\n\n    more of c\n\n```console,long\n$ x\n```\n\n- b\n\n  ```toml,scenario=a.toml\n  y\n  ```\n\n```\n```\n```perl\n```\n";
    let page = Page::of("a.md".to_owned(), text);
    let kinds: Vec<&Kind> = page.blocks.iter().map(|block| &block.kind).collect();
    let wanted = [Kind::Console { root: false, long: true }, Kind::Scenario(Some("a.toml".to_owned()))];
    assert_eq!(kinds, wanted.iter().collect::<Vec<_>>());
    assert_eq!((page.blocks[0].place.as_str(), page.blocks[0].text.as_str()), ("a.md:9", "$ x\n"));
    assert_eq!(page.faults.len(), 3, "{:?}", page.faults);
    assert_eq!(page.prose, "# A\n\n    code\n\n1. c\n\n    more of c\n\n\n- b\n\n\n");
}
