//! Commands of a block, and their expected output.

use std::path::Path;

/// A command with the lines below it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: String,
    pub(crate) printed: Vec<String>,
}

/// Parses the commands of a block.
///
/// # Errors
/// The block does not begin with a command.
pub(crate) fn commands(text: &str) -> Result<Vec<Command>, String> {
    let mut found: Vec<Command> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) if !goes_on => {
                found.push(Command { line: command.to_owned(), printed: Vec::new() });
            }
            (_, None) => return Err(format!("`{line}` is not behind a command, which begins with `$ `")),
            (_, Some(last)) if goes_on => last.line += &format!("\n{}", line.trim_start()),
            (_, Some(last)) => last.printed.push(line.trim_end().to_owned()),
        }
        goes_on = line.ends_with('\\') && found.last().is_some_and(|last| last.printed.is_empty());
    }
    for command in &mut found {
        while command.printed.last().is_some_and(String::is_empty) {
            command.printed.pop();
        }
        command.line = command.line.replace("\\\n", "");
    }
    Ok(found)
}

/// Difference between the output and a page's text. `...` in the text matches anything; alone on a
/// line it matches any lines.
pub(crate) fn difference(wanted: &[String], printed: &str) -> Option<String> {
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    if wanted.is_empty() || lines_match(wanted, &printed) {
        return None;
    }
    Some(format!("the page says\n{}\nand this was printed\n{}", wanted.join("\n"), printed.join("\n")))
}

fn lines_match(wanted: &[String], printed: &[&str]) -> bool {
    match wanted.split_first() {
        None => printed.is_empty(),
        Some((any, rest)) if any.trim() == "..." => {
            (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..]))
        }
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, after)| matches(line, first) && lines_match(rest, after)),
    }
}

fn matches(wanted: &str, printed: &str) -> bool {
    let parts: Vec<&str> = wanted.split("...").collect();
    let [first, between @ .., last] = &parts[..] else { return wanted == printed };
    let Some(rest) = printed.strip_prefix(first) else { return false };
    let rest = between.iter().try_fold(rest, |rest, part| rest.split_once(part).map(|(_, after)| after));
    rest.is_some_and(|rest| rest.ends_with(last))
}

/// Checks that the targets of a cargo command exist, without building. Returns what is missing.
pub(crate) fn fault_of_cargo(root: &Path, line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "--" && *word != "#").collect();
    if let ["cargo", "xtask", name, ..] = &words[..] {
        let usage = std::fs::read_to_string(root.join("xtask/src/main.rs")).expect("it is here");
        let known = usage
            .lines()
            .any(|line| line.trim_start().starts_with(&format!("{name} ")) && line.starts_with("  "));
        return (!known).then(|| format!("there is no `cargo xtask {name}`"));
    }
    let value = |names: &[&str]| words.windows(2).find(|pair| names.contains(&pair[0])).map(|pair| pair[1]);
    if let Some(manifest) = value(&["--manifest-path"]) {
        return (!root.join(manifest).is_file()).then(|| format!("there is no {manifest}"));
    }
    let package = value(&["-p", "--package"])?;
    let folder = root.join("crates").join(package.trim_start_matches("anabranch-"));
    if !folder.is_dir() {
        return Some(format!("there is no package {package}"));
    }
    let targets = [("--bench", "benches"), ("--example", "examples"), ("--test", "tests")];
    targets.into_iter().find_map(|(option, place)| {
        let name = value(&[option])?;
        let place = folder.join(place);
        let found = place.join(format!("{name}.rs")).exists() || place.join(name).join("main.rs").exists();
        (!found).then(|| format!("{package} has nothing for `{option} {name}`"))
    })
}

#[test]
fn a_command_may_have_several_lines_and_output() {
    let found = commands("$ a \\\n    b\n$ c\nx\n\n...\n\n").expect("they are commands");
    assert_eq!(found[0], Command { line: "a b".to_owned(), printed: Vec::new() });
    assert_eq!(found[1].printed, ["x", "", "..."]);
    assert!(commands("x\n$ a\n").is_err());
}

#[test]
fn dots_stand_for_anything_and_only_they() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(difference(&lines("a ... c\n...\nz"), "a b c\nx\ny\nz\n"), None);
    assert_eq!(difference(&lines("...\nz"), "z"), None);
    assert!(difference(&lines("a\nz"), "a\nb\nz").is_some());
    assert!(difference(&lines("a ... c"), "a b d").is_some());
}

#[test]
fn cargo_s_commands_name_what_is_there() {
    let root = crate::docs::root();
    for good in
        ["cargo xtask tidy", "cargo bench -p anabranch-sim --bench dumbbell # it", "cargo build --release"]
    {
        assert_eq!(fault_of_cargo(&root, good), None, "{good}");
    }
    for bad in [
        "cargo xtask tiddy",
        "cargo bench -p anabranch-sim --bench nothing",
        "cargo test -p anabranch-x",
        "cargo run --manifest-path x/Cargo.toml",
    ] {
        assert!(fault_of_cargo(&root, bad).is_some(), "{bad}");
    }
}
