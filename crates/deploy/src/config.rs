//! `--config FILE`: options from a TOML file.
//!
//! The file has no options of its own: its keys are the long options of the command, looked up in
//! the command's clap definition. Each key becomes an argument in front of the command line's
//! arguments, unless the command line has that option or a conflicting one. clap then checks all
//! values in the same way.

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

/// Commands that accept `--config`, also as the programs that consist of one of them.
const CONFIGURABLE: [&str; 8] = ["node", "gateway", "push", "sense", "sink", "cache", "multipath", "tune"];
/// Name of the option for the file.
const CONFIG: &str = "config";
/// Options that are not allowed in a file.
const COMMAND_LINE_ONLY: [&str; 6] = [CONFIG, "check", "guard", "help", "restore", "version"];

fn is_configurable(name: &str) -> bool {
    CONFIGURABLE.contains(&name.strip_prefix("anabranch-").unwrap_or(name))
}

/// Adds `--config` to the commands of `program` that accept it.
pub fn with_files(program: Command) -> Command {
    let option = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("Read options from this TOML file; its keys are the long option names")
        .long_help("Read options from this TOML file; its keys are the long option names.\n\nOptions on the command line take precedence. Paths in the file are relative to the working directory.");
    let names = program.get_subcommands().map(Command::get_name).filter(|name| is_configurable(name));
    let there: Vec<String> = names.map(str::to_owned).collect();
    there.iter().fold(program, |program, name| program.mut_subcommand(name, |c| c.arg(option.clone())))
}

/// Parses the command line together with the file that it names.
///
/// # Errors
/// The file is unreadable or invalid. An invalid command line without a file ends the process, as
/// clap does.
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
    // The options of the file follow the command's name. A program with one command has no separate
    // program name in front of it.
    let head = if program.is_multicall_set() { 1 } else { 2 };
    let mut all: Vec<OsString> = arguments.iter().take(head).cloned().collect();
    all.extend(wanted.flat_map(|entry| entry.arguments.iter().map(OsString::from)));
    all.extend(arguments.into_iter().skip(head));
    program.clone().try_get_matches_from(all).map_err(|error| file.placed(&entries, &error))
}

/// Options given on the command line itself.
struct Said {
    /// Name of the command.
    name: String,
    matches: ArgMatches,
}

/// The file that the command line names, and the options given beside it.
fn named(program: &Command, arguments: &[OsString]) -> Option<(PathBuf, Said)> {
    // Ignore errors here: the file may supply a missing option. The second parse, with the file,
    // reports them.
    let matches = program.clone().ignore_errors(true).try_get_matches_from(arguments).ok()?;
    let (name, matches) = matches.subcommand().filter(|(name, _)| is_configurable(name))?;
    let path = matches.try_get_one::<PathBuf>(CONFIG).ok().flatten()?;
    Some((path.clone(), Said { name: name.to_owned(), matches: matches.clone() }))
}

impl Said {
    /// Whether the command line has this option or an option that conflicts with it.
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

/// A key of the file, converted to arguments.
struct Entry<'c> {
    option: &'c Arg,
    /// Byte range of the value in the file.
    span: Range<usize>,
    arguments: Vec<String>,
}

struct File<'p> {
    source: Text,
    path: &'p Path,
}

impl File<'_> {
    /// Converts the keys of the file to arguments, in the order of the file.
    ///
    /// # Errors
    /// A key is unknown, or its value has a type that the option does not take.
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
            let message = format!("`{name}` is allowed on the command line only");
            return self.error(span, message, Some(format!("remove it from this file and give --{name}")));
        }
        let message = format!("`{}` has no option `{name}`", command.get_name());
        let hint = match did_you_mean(&name.replace('_', "-"), known.iter().map(|(name, _)| *name)) {
            _ if value.is_table() => "the file is for one command and has no sections".to_owned(),
            Some(hint) => hint,
            None => {
                let name = command.get_name();
                // The name of a one-command program already starts with `anabranch`.
                let before = if name.starts_with("anabranch") { "" } else { "anabranch " };
                format!("see {before}{name} --help: keys are its long options")
            }
        };
        self.error(span, message, Some(hint))
    }

    fn error(&self, span: Range<usize>, message: String, hint: Option<String>) -> Error {
        TextError { place: self.source.place(span), message, hint }.into()
    }

    /// Converts an error of clap; it gets the place in the file if a value of the file caused it.
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
        // clap names the option only. The file is to blame if its arguments contain the value.
        let said = entry.arguments.iter().any(|argument| argument.contains(value));
        let reason = std::error::Error::source(error).map(ToString::to_string);
        match error.kind() {
            ErrorKind::ValueValidation | ErrorKind::InvalidValue if said => {
                let reason = reason.unwrap_or_else(|| "not one of the possible values".to_owned());
                let message = format!("{name}: `{value}`: {reason}");
                let hint = format!("`{name}` takes the same values as --{name}; see --help");
                self.error(entry.span.clone(), message, Some(hint))
            }
            ErrorKind::ArgumentConflict => {
                let other = text(ContextKind::PriorArg).unwrap_or("another option");
                let message = format!("`{name}` conflicts with {other}");
                self.error(entry.span.clone(), message, Some("remove one of them".to_owned()))
            }
            _ => self.beside(error),
        }
    }

    /// Converts an error that no value of the file caused, with a hint that options also come from
    /// the file.
    fn beside(&self, error: &clap::Error) -> Error {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        Error::input(text).with_hint(format!("options were read from {} too", self.path.display()))
    }
}

/// An error message and its hint.
type Fault = (String, String);

/// Converts a key and its value to command-line arguments.
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

/// Converts a string or a number to the text of an argument.
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
