//! Builds the static libraries for C programs (`crates/embed` and its siblings) as their users do,
//! and links C programs with them.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::debian::{find_or_install, skipped};

/// Target of a machine without an operating system.
pub const BARE_METAL: &str = "thumbv7em-none-eabihf";

/// Sizes of a program's sections, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sections {
    /// Code and constants.
    pub text: u64,
    /// Initialised variables.
    pub data: u64,
    /// Variables that start as zero.
    pub bss: u64,
    /// Unwinding tables in `text`, which a device leaves out.
    pub unwinding: u64,
}

/// Root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Path of a file in `crates/embed/`.
pub fn file(path: &str) -> PathBuf {
    Kind::Plain.file(path)
}

/// A library, or a variant of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The node without encryption.
    Plain,
    /// The node with the features `noise` and `manifest`; C sources see the macro `NOISE`.
    Noise,
    /// The cache.
    Cache,
    /// RDCA's sender.
    Sense,
}

impl Kind {
    /// The name in headers and symbols.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain | Self::Noise => "anabranch_node",
            Self::Cache => "anabranch_cache",
            Self::Sense => "anabranch_sense",
        }
    }

    /// Name of the package, without `anabranch-`; also its folder in `crates/`.
    fn package(self) -> &'static str {
        match self {
            Self::Plain | Self::Noise => "embed",
            Self::Cache => "embed-cache",
            Self::Sense => "embed-sense",
        }
    }

    fn features(self) -> &'static str {
        match self {
            Self::Plain | Self::Cache | Self::Sense => "c",
            Self::Noise => "c,noise,manifest",
        }
    }

    fn has_encryption(self) -> bool {
        matches!(self, Self::Noise | Self::Sense)
    }

    /// Path of a file in the folder of the package.
    pub fn file(self, path: &str) -> PathBuf {
        root().join("crates").join(self.package()).join(path)
    }
}

/// Compiler flags without vector instructions. The vector code that the cryptographic crates would
/// detect takes as much space as the rest of them, and small nodes have no such instructions.
/// docs/reference/embedded.md has the same flags.
const SMALL: &str = "--cfg curve25519_dalek_backend=\"serial\" --cfg chacha20_force_soft --cfg poly1305_force_soft \
    -C force-unwind-tables=no";

/// How a library is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Build {
    /// As users build it.
    Shipped,
    /// With AddressSanitizer in the code of Rust and of C.
    Sanitized,
}

impl Build {
    /// True unless the build needs a request by the environment: [`Build::Sanitized`] compiles
    /// everything again. If not, it prints that.
    pub fn is_wanted(self) -> bool {
        let is_wanted = self == Self::Shipped || env::var_os("ANABRANCH_ASAN").is_some();
        if !is_wanted {
            skipped("AddressSanitizer in a C library: set ANABRANCH_ASAN=1, then run this test again");
        }
        is_wanted
    }
}

/// Target of this machine. With a target, RUSTFLAGS do not apply to build scripts and macros.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// Cargo target directory in which [`library`] builds.
pub fn target_dir(kind: Kind) -> PathBuf {
    let built = env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    built.join(if kind.has_encryption() { "for-c-noise" } else { "for-c" })
}

/// Builds the static library, for this machine or for another target.
///
/// # Panics
///
/// The build fails.
pub fn library(kind: Kind, target: Option<&str>) -> PathBuf {
    built(kind, target, Build::Shipped)
}

fn built(kind: Kind, target: Option<&str>, build: Build) -> PathBuf {
    // Use a separate target directory: the process that runs these tests holds the lock of the
    // usual one.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let is_sanitized = build == Build::Sanitized;
    let built = if is_sanitized { target_dir(kind).with_file_name("for-c-asan") } else { target_dir(kind) };
    let package = format!("anabranch-{}", kind.package());
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(root()).arg("rustc").arg("--target-dir").arg(&built);
    cargo.args(["--quiet", "--locked", "--package", &package, "--lib", "--crate-type", "staticlib"]);
    cargo.args(["--features", kind.features(), "--profile", "embedded"]);
    cargo.args(target.iter().flat_map(|target| ["--target", target]));
    if kind.has_encryption() {
        cargo.env("RUSTFLAGS", SMALL);
    }
    // `cargo xtask test --slowest` sets this variable for libtest; it would make build scripts run
    // again.
    cargo.env_remove("RUSTC_BOOTSTRAP");
    if is_sanitized {
        // The option is not stable yet. Memory is checked in C's memory, not in the heap within.
        cargo.env("RUSTC_BOOTSTRAP", "1");
        let flags = if kind.has_encryption() { SMALL } else { "" };
        cargo.env("RUSTFLAGS", format!("{flags} -Zsanitizer=address"));
    }
    let output = cargo.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    built.join(target.unwrap_or_default()).join(format!("embedded/lib{}.a", kind.name()))
}

/// Compiles a C program from `sources` and links the library. Without a C compiler it prints that
/// and returns `None`.
///
/// # Panics
///
/// The compiler fails or warns.
pub fn program(kind: Kind, sources: &[&Path], program: &Path) -> Option<()> {
    program_as(kind, Build::Shipped, sources, program)
}

/// As [`program()`], with a library that was built like this.
///
/// # Panics
///
/// As [`program()`].
pub fn program_as(kind: Kind, build: Build, sources: &[&Path], program: &Path) -> Option<()> {
    let compiler = find_or_install("cc", "gcc")?;
    let mut cc = Command::new(compiler);
    cc.args(["-std=c11", "-Os", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"]).arg(kind.file("include"));
    if kind.has_encryption() {
        cc.arg("-DNOISE");
    }
    let target = match build {
        Build::Shipped => None,
        Build::Sanitized => {
            // The sanitizer keeps parts of compiler-builtins that refer to this function.
            cc.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
            cc.arg("-Wl,--defsym=rust_eh_personality=0");
            Some(HOST)
        }
    };
    cc.args(sources).arg(built(kind, target, build));
    cc.args(["-Wl,--gc-sections", "-Wl,-z,now", "-o"]).arg(program);
    let output = cc.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

/// Compiles `tests/hostile.c` of a library and runs it with these arguments, under the program in
/// `with` if it is not empty. Returns its output. Without a C compiler it prints that and returns
/// `None`.
///
/// # Panics
///
/// The program finds a fault.
pub fn hostile(
    kind: Kind,
    build: Build,
    with: &[&str],
    arguments: [&str; 2],
    folder: &Path,
) -> Option<String> {
    let linked = folder.join("hostile");
    program_as(kind, build, &[&kind.file("tests/hostile.c")], &linked)?;
    let mut words = with.iter().map(OsStr::new).chain([linked.as_os_str()]);
    let mut run = Command::new(words.next().expect("it has a name"));
    let run = run.args(words).args(arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{arguments:?}: {said}{}", String::from_utf8_lossy(&run.stderr));
    Some(said)
}

/// Runs `tests/hostile.c` of a library for `rounds` rounds with each of three seeds.
///
/// # Panics
///
/// The program finds a fault.
pub fn enemies(kind: Kind, rounds: &str, folder: &Path) {
    for seed in ["1", "2", "3"] {
        let Some(said) = hostile(kind, Build::Shipped, &[], [rounds, seed], folder) else { return };
        println!("seed {seed}: {said}");
    }
}

/// As [`enemies`], under valgrind.
///
/// # Panics
///
/// The program or valgrind finds a fault.
pub fn enemies_under_valgrind(kind: Kind, folder: &Path) {
    let Some(valgrind) = find_or_install("valgrind", "valgrind") else { return };
    let valgrind = [valgrind.to_str().expect("text"), "--quiet", "--error-exitcode=99"];
    hostile(kind, Build::Shipped, &valgrind, ["2", "4"], folder);
}

/// As [`enemies`], with AddressSanitizer in the library, if [`Build::is_wanted`].
///
/// # Panics
///
/// The program or AddressSanitizer finds a fault.
pub fn enemies_of_the_sanitized(kind: Kind, rounds: &str, folder: &Path) {
    if !Build::Sanitized.is_wanted() {
        return;
    }
    for seed in ["5", "6"] {
        hostile(kind, Build::Sanitized, &[], [rounds, seed], folder);
    }
}

/// Checks that all functions of a library have less than `limit` bytes of text, for bare metal and
/// for this machine, and prints the parts of an example, a file in `examples`.
///
/// # Panics
///
/// The library is larger, or has 64 bytes of variables.
pub fn check_text(kind: Kind, limit: u64, example: &str, parts: &[Part], folder: &Path) {
    let functions = defined(kind);
    if let Some(sizes) = bare_metal(kind, &functions, &folder.join("bare")) {
        println!("for bare metal: text {} data {} bss {}", sizes.text, sizes.data, sizes.bss);
        assert!(sizes.text < limit && sizes.data + sizes.bss < 64, "{sizes:?}");
    }
    let Some(sizes) = whole(kind, &functions, folder) else { return };
    println!("for this machine: text {} data {} bss {}", sizes.text - sizes.unwinding, sizes.data, sizes.bss);
    assert!(sizes.text - sizes.unwinding < limit, "{sizes:?}");
    let linked = folder.join("example");
    let Some(()) = program(kind, &[&kind.file(&format!("examples/{example}"))], &linked) else { return };
    println!("the example:");
    text_by_part(&linked, parts);
}

/// Links all functions of a library into a program for this machine that does nothing, in `folder`,
/// and returns its section sizes. They include the start of a C program, about 1.5 kB.
pub fn whole(kind: Kind, functions: &[String], folder: &Path) -> Option<Sections> {
    let (source, linked) = (folder.join("whole.c"), folder.join("whole"));
    fs::write(&source, nothing(kind)).expect("it can be written");
    let compiler = find_or_install("cc", "gcc")?;
    let mut cc = Command::new(compiler);
    cc.args(["-Os", "-no-pie", "-I"]).arg(kind.file("include")).arg(&source).arg(library(kind, None));
    cc.args(functions.iter().map(|name| format!("-Wl,-u,{name}")));
    cc.args(["-Wl,--gc-sections", "-o"]).arg(&linked);
    let output = cc.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    sections(&linked)
}

/// A program that does nothing: the functions that a library calls.
fn nothing(kind: Kind) -> String {
    let name = kind.name();
    let mut source = format!("#include \"{name}.h\"\nvoid {name}_panicked(void) {{ for (;;) ; }}\n");
    if kind.has_encryption() {
        source +=
            &format!("int {name}_entropy(void *octets, size_t n) {{ return octets == NULL || n == 0; }}\n");
    }
    source + "int main(void) { return 0; }\n"
}

/// A part of a program, and substrings of the names of its symbols.
pub type Part = (&'static str, &'static [&'static str]);

/// Text of a program by part in bytes, from its symbols; the first part with a matching name
/// counts, and the last must match every name. Parts without text are left out. The last entries
/// are constants and tables without a symbol, and the sum. Prints all of it. Without `nm` it prints
/// that and returns `None`.
pub fn text_by_part(program: &Path, parts: &[Part]) -> Option<Vec<(&'static str, u64)>> {
    let nm = find_or_install("nm", "binutils")?;
    let sizes = sections(program)?;
    let output =
        Command::new(nm).args(["-C", "-S", "--defined-only"]).arg(program).output().expect("it starts");
    let mut text = vec![0; parts.len()];
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [_, octets, kind, name] = words[..] else { continue };
        if !"tTrR".contains(kind) {
            continue;
        }
        let part = parts.iter().position(|(_, words)| words.iter().any(|word| name.contains(word)));
        text[part.expect("the last fits")] += u64::from_str_radix(octets, 16).unwrap_or(0);
    }
    let (all, named) = (sizes.text - sizes.unwinding, text.iter().sum::<u64>());
    // Constants and additions of the C compiler have no symbol.
    assert!(named <= all && named > all * 3 / 4, "{named} octets of {all} have a name");
    let parts = parts.iter().map(|(name, _)| *name).zip(text).filter(|(_, octets)| *octets > 0);
    let rest = [("constants, and tables of the linker", all - named), ("together", all)];
    let parts: Vec<_> = parts.chain(rest).collect();
    parts.iter().for_each(|(name, octets)| println!("  {octets:>6}  {name}"));
    Some(parts)
}

/// The names after `before` in a text, sorted, without duplicates, those of the program excluded.
fn names(kind: Kind, text: &str, before: &str) -> Vec<String> {
    let name = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let is_function = rest[end..].starts_with('(') && !OF_THE_PROGRAM.contains(&&rest[..end]);
        is_function.then(|| format!("{}_{}", kind.name(), &rest[..end]))
    };
    let mut names: Vec<String> = text.split(before).skip(1).filter_map(name).collect();
    names.sort();
    names.dedup();
    names
}

/// Functions that the program defines and the library calls.
const OF_THE_PROGRAM: [&str; 2] = ["panicked", "entropy"];

/// The functions of a library, from its source.
pub fn defined(kind: Kind) -> Vec<String> {
    let source = fs::read_to_string(kind.file("src/c.rs")).expect("it is there");
    names(kind, &source, &format!("fn {}_", kind.name()))
}

/// The functions that the header of a library declares outside of comments.
pub fn declared(kind: Kind) -> Vec<String> {
    let header = format!("include/{}.h", kind.name());
    let header = fs::read_to_string(kind.file(&header)).expect("it is there");
    let code: String =
        header.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, code)| code)).collect();
    names(kind, &code, &format!("{}_", kind.name()))
}

/// The size of a type of a header and the offsets of its fields as Rust sees them, for
/// [`check_header`].
#[macro_export]
macro_rules! layout_checks {
    ($name:literal, $type:ty, $($field:ident),+) => {
        [
            (format!("sizeof({})", $name), ::core::mem::size_of::<$type>()),
            $((
                format!("offsetof({}, {})", $name, stringify!($field)),
                ::core::mem::offset_of!($type, $field),
            ),)+
        ]
    };
}

/// Compiles and links a program that asserts the value of constant expressions of C with the header
/// of a library. `folder` is for temporary files.
///
/// # Panics
///
/// The compiler fails: an expression has another value.
pub fn check_header(kind: Kind, checks: &[(String, usize)], folder: &Path) {
    let mut source = nothing(kind);
    for (what, is) in checks {
        source += &format!("_Static_assert({what} == {is}, \"{what}\");\n");
    }
    let path = folder.join("layout.c");
    fs::write(&path, source).expect("it can be written");
    program(kind, &[&path], &folder.join("layout"));
}

/// Links the whole library for [`BARE_METAL`] and returns its section sizes. Without that target it
/// prints that and returns `None`.
///
/// # Panics
///
/// The build fails.
pub fn bare_metal(kind: Kind, functions: &[String], program: &Path) -> Option<Sections> {
    let asked = |arguments: &[&str]| Command::new("rustc").args(arguments).output().ok().map(|o| o.stdout);
    let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).trim().to_owned();
    let sysroot = asked(&["--print", "sysroot"]).map(text).map(PathBuf::from)?;
    let host = asked(&["--print", "host-tuple"]).map(text)?;
    let targets = sysroot.join("lib/rustlib");
    let linker = targets.join(host).join("bin/rust-lld");
    if !targets.join(BARE_METAL).join("lib").is_dir() || !linker.is_file() {
        skipped(&format!("a build for bare metal: rustup target add {BARE_METAL}, then run this test again"));
        return None;
    }
    let mut lld = Command::new(linker);
    lld.args(["-flavor", "gnu", "--gc-sections", "-e", &functions[0]]);
    lld.args(["panicked", "entropy"].map(|function| format!("--defsym={}_{function}=0", kind.name())));
    lld.args(functions.iter().flat_map(|name| ["-u", name]));
    lld.arg(library(kind, Some(BARE_METAL))).arg("-o").arg(program);
    let output = lld.output().expect("the linker starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    sections(program)
}

/// Section sizes of a program, as `size` reports them. Without `size` it prints that and returns
/// `None`.
pub fn sections(program: &Path) -> Option<Sections> {
    let size = find_or_install("size", "binutils")?;
    let told = |format: &str| {
        let output = Command::new(&size).arg(format).arg(program).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (table, parts) = (told("-B")?, told("-A")?);
    let mut numbers = table.lines().nth(1)?.split_whitespace().map_while(|word| word.parse().ok());
    let tables = parts.lines().filter(|line| line.starts_with(".eh_frame"));
    let tables = tables.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    Some(Sections {
        text: numbers.next()?,
        data: numbers.next()?,
        bss: numbers.next()?,
        unwinding: tables.sum(),
    })
}
