//! `--config FILE`: options from a TOML file, for any command that asks for it.
//!
//! A file says nothing that the command line could not say. Its keys are the long options of the
//! command, found in the command's own definition; each becomes an argument that stands before
//! those of the command line, unless the command line has the option itself or one that does not go
//! with it. Checking values is then clap's, as it always was.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anabranch_units::did_you_mean;
use anabranch_units::text::{Text, TextError};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use toml::de::DeValue;

use crate::error::Error;

/// The commands that read a file, and the programs that are one of these commands.
const CONFIGURABLE: [&str; 6] =
    ["node", "gateway", "push", "anabranch-node", "anabranch-gateway", "anabranch-push"];
/// The option that names it.
const CONFIG: &str = "config";
/// Options that mean something on the command line only.
const COMMAND_LINE_ONLY: [&str; 4] = [CONFIG, "check", "help", "version"];

/// The definition of the program, with the option where it belongs.
pub fn with_files(program: Command) -> Command {
    let option = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("Take options from this TOML file: its keys are the long options, its values what would follow them. The command line goes before it; paths in it are relative to the working directory");
    let named = |command: &Command| CONFIGURABLE.contains(&command.get_name());
    let there: Vec<String> =
        program.get_subcommands().filter(|c| named(c)).map(|c| c.get_name().to_owned()).collect();
    there.iter().fold(program, |program, name| program.mut_subcommand(name, |c| c.arg(option.clone())))
}

/// What the command line says, and the file that it names.
///
/// # Errors
/// What is wrong in the file. What is wrong on the command line ends the program, as clap does.
pub fn matches(program: &Command, arguments: Vec<OsString>) -> Result<ArgMatches, Error> {
    let Some((path, said)) = named(program, &arguments) else {
        return Ok(program.clone().get_matches_from(arguments));
    };
    let mut command = program.find_subcommand(&said.name).expect("clap has found it").clone();
    command.build();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Error::unreadable(&path, &error).with_hint("--config takes a TOML file"))?;
    let file = File { source: Text::new(path.display().to_string(), text), path: &path };
    let entries = file.entries(&command)?;
    let wanted = entries.iter().filter(|entry| !said.overrides(&command, entry.option));
    // The file's options stand behind the command's name, which is the program's own where it has
    // one command.
    let head = if program.is_multicall_set() { 1 } else { 2 };
    let mut all: Vec<OsString> = arguments.iter().take(head).cloned().collect();
    all.extend(wanted.flat_map(|entry| entry.arguments.iter().map(OsString::from)));
    all.extend(arguments.into_iter().skip(head));
    program.clone().try_get_matches_from(all).map_err(|error| file.placed(&entries, &error))
}

/// What the command line itself says.
struct Said {
    /// The command.
    name: String,
    matches: ArgMatches,
}

/// The file that the command line names, if it names one.
fn named(program: &Command, arguments: &[OsString]) -> Option<(PathBuf, Said)> {
    // What is missing or does not go together may be right with the file: it is judged with it.
    let matches = program.clone().ignore_errors(true).try_get_matches_from(arguments).ok()?;
    let (name, matches) = matches.subcommand().filter(|(name, _)| CONFIGURABLE.contains(name))?;
    let path = matches.try_get_one::<PathBuf>(CONFIG).ok().flatten()?;
    Some((path.clone(), Said { name: name.to_owned(), matches: matches.clone() }))
}

impl Said {
    /// The command line has this option, or one that does not go with it.
    fn overrides(&self, command: &Command, option: &Arg) -> bool {
        let conflicts = command.get_arg_conflicts_with(option);
        command.get_arguments().filter(|other| self.has(other)).any(|other| {
            let blames =
                || command.get_arg_conflicts_with(other).iter().any(|o| o.get_id() == option.get_id());
            other.get_id() == option.get_id()
                || conflicts.iter().any(|o| o.get_id() == other.get_id())
                || blames()
        })
    }

    fn has(&self, option: &Arg) -> bool {
        self.matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine)
    }
}

/// A key of the file, and what it says as arguments.
struct Entry<'c> {
    option: &'c Arg,
    /// Where its value stands.
    span: Range<usize>,
    arguments: Vec<String>,
}

struct File<'p> {
    source: Text,
    path: &'p Path,
}

impl File<'_> {
    /// What the file says, in its order.
    fn entries<'c>(&self, command: &'c Command) -> Result<Vec<Entry<'c>>, Error> {
        let tree = self.source.tree()?;
        let known: Vec<(&str, &Arg)> = command
            .get_arguments()
            .filter_map(|option| Some((option.get_long()?, option)))
            .filter(|(name, _)| !COMMAND_LINE_ONLY.contains(name))
            .collect();
        let mut keys: Vec<_> = tree.get_ref().iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let entries = keys.into_iter().map(|(key, value)| {
            let name: &str = key.get_ref();
            let Some((_, option)) = known.iter().find(|(known, _)| *known == name) else {
                return Err(self.unknown(name, key.span(), value.get_ref(), command, &known));
            };
            let arguments = arguments(name, option, value.get_ref())
                .map_err(|(message, hint)| self.error(value.span(), message, Some(hint)))?;
            Ok(Entry { option, span: value.span(), arguments })
        });
        entries.collect()
    }

    fn unknown(
        &self,
        name: &str,
        span: Range<usize>,
        value: &DeValue<'_>,
        command: &Command,
        known: &[(&str, &Arg)],
    ) -> Error {
        if COMMAND_LINE_ONLY.contains(&name) {
            let message = format!("`{name}` is for the command line only");
            return self.error(span, message, Some(format!("leave it out here and give --{name}")));
        }
        let message = format!("`{}` has no option `{name}`", command.get_name());
        let hint = match did_you_mean(&name.replace('_', "-"), known.iter().map(|(name, _)| *name)) {
            _ if value.is_table() => "a file is for one command and has no sections".to_owned(),
            Some(hint) => hint,
            None => {
                let name = command.get_name();
                // A program of one command has its own name.
                let before = if name.starts_with("anabranch") { "" } else { "anabranch " };
                format!("see {before}{name} --help: keys are its long options")
            }
        };
        self.error(span, message, Some(hint))
    }

    fn error(&self, span: Range<usize>, message: String, hint: Option<String>) -> Error {
        TextError { place: self.source.place(span), message, hint }.into()
    }

    /// An error of clap's, with the place in the file if a value of the file is to blame.
    fn placed(&self, entries: &[Entry<'_>], error: &clap::Error) -> Error {
        let text = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => Some(text.as_str()),
            _ => None,
        };
        let blamed = text(ContextKind::InvalidArg).and_then(|shown| {
            let named = |entry: &&Entry<'_>| entry.option.to_string() == shown;
            entries.iter().find(named)
        });
        let Some(entry) = blamed else { return self.beside(error) };
        let name = entry.option.get_long().unwrap_or_default();
        let value = text(ContextKind::InvalidValue).unwrap_or_default();
        let said = entry.arguments.iter().any(|argument| argument.contains(value));
        let reason = std::error::Error::source(error).map(ToString::to_string);
        match error.kind() {
            ErrorKind::ValueValidation | ErrorKind::InvalidValue if said => {
                let reason = reason.unwrap_or_else(|| "that is none of its values".to_owned());
                let message = format!("{name}: `{value}`: {reason}");
                let hint = format!("it takes what --{name} takes; see --help");
                self.error(entry.span.clone(), message, Some(hint))
            }
            ErrorKind::ArgumentConflict => {
                let other = text(ContextKind::PriorArg).unwrap_or("another option");
                let message = format!("`{name}` does not go with {other}");
                self.error(entry.span.clone(), message, Some("leave one of them out".to_owned()))
            }
            _ => self.beside(error),
        }
    }

    /// An error of the command line with the file in mind.
    fn beside(&self, error: &clap::Error) -> Error {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        Error::input(text).with_hint(format!("options were taken from {} too", self.path.display()))
    }
}

/// What is wrong with a value, and what to do.
type Fault = (String, String);

/// A key and its value as the command line would say them.
fn arguments(name: &str, option: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, Fault> {
    let list = matches!(option.get_action(), ArgAction::Append);
    match (option.get_action(), value) {
        (ArgAction::SetTrue | ArgAction::SetFalse, DeValue::Boolean(yes)) => {
            let given = *yes == matches!(option.get_action(), ArgAction::SetTrue);
            Ok(if given { vec![format!("--{name}")] } else { Vec::new() })
        }
        (ArgAction::SetTrue | ArgAction::SetFalse, other) => {
            Err((format!("`{name}` is {}; expected true or false", kind(other)), format!("{name} = true")))
        }
        (_, DeValue::Array(items)) if list => items
            .iter()
            .map(|item| Ok(format!("--{name}={}", scalar(name, option, item.get_ref())?)))
            .collect(),
        (_, value) => Ok(vec![format!("--{name}={}", scalar(name, option, value)?)]),
    }
}

/// A text or a number, as text.
fn scalar(name: &str, option: &Arg, value: &DeValue<'_>) -> Result<String, Fault> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(match number.radix() {
            10 => number.as_str().to_owned(),
            radix => i128::from_str_radix(number.as_str(), radix)
                .map_or_else(|_| number.to_string(), |n| n.to_string()),
        }),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        other => {
            let shown =
                option.get_value_names().and_then(|names| names.first()).map_or("VALUE", |n| n.as_str());
            let expected = match option.get_action() {
                ArgAction::Append => "a text, a number, or a list of them",
                _ => "a text or a number",
            };
            let message = format!("`{name}` is {}; expected {expected}", kind(other));
            Err((message, format!("{name} = \"{shown}\"; options have no sections")))
        }
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
