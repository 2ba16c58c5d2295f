//! Tests of the build files in `packaging/embedded`: real CMake and pkg-config install and use the
//! package. Zephyr and ESP-IDF are not available here, so CMake runs their files with small
//! stand-ins for the functions that they provide.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_testkit::debian::{find_or_install, skipped};
use anabranch_testkit::embedded::{Kind, file, library, target_dir};

fn packaging(path: &str) -> PathBuf {
    file("../../packaging/embedded").join(path).canonicalize().expect("it is there")
}

#[track_caller]
fn does(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).into_owned());
    assert!(output.status.success(), "{command:?}: {}", said.concat());
    said.concat()
}

/// Configures and builds a project.
fn build(cmake: &Path, source: &Path, build: &Path, options: &[String]) -> String {
    let told = does(Command::new(cmake).args(["-S"]).arg(source).arg("-B").arg(build).args(options));
    let mut make = Command::new(cmake);
    // An outer make passes its flags on in the environment. `cargo xtask test --slowest` sets
    // RUSTC_BOOTSTRAP for libtest; with it, cargo would build the library again.
    make.arg("--build").arg(build).arg("--verbose").env_remove("MAKEFLAGS").env_remove("RUSTC_BOOTSTRAP");
    told + &does(&mut make)
}

/// Lets cargo reuse what the other tests have built.
fn built_before() -> [String; 2] {
    library(Kind::Plain, None);
    let target = target_dir(Kind::Plain);
    [format!("-DANABRANCH_NODE_TARGET_DIR={}", target.display()), "-DANABRANCH_NODE_RUSTFLAGS=".to_owned()]
}

fn tools() -> Option<PathBuf> {
    find_or_install("cc", "gcc")?;
    find_or_install("make", "make")?;
    find_or_install("cmake", "cmake")
}

/// Runs the test program for hostile input, which needs the whole header and archive.
#[track_caller]
fn runs(program: &Path) {
    does(Command::new(program).args(["3", "1"]));
}

#[test]
fn an_installed_package_is_found_by_cmake_and_by_pkg_config() {
    let Some(cmake) = tools() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    let prefix = here.join("prefix");
    let mut options = built_before().to_vec();
    options.extend(["NOISE", "MANIFEST"].map(|feature| format!("-DANABRANCH_NODE_{feature}=OFF")));
    options.push(format!("-DCMAKE_INSTALL_PREFIX={}", prefix.display()));
    // The same folders on every distribution.
    options.push("-DCMAKE_INSTALL_LIBDIR=lib".to_owned());
    build(&cmake, &packaging("."), &here.join("build"), &options);
    does(Command::new(&cmake).arg("--install").arg(here.join("build")));

    let user = here.join("user");
    fs::create_dir(&user).expect("it can be made");
    let project = |components: &str| {
        let program = file("tests/hostile.c").canonicalize().expect("it is there");
        let text = format!(
            "cmake_minimum_required(VERSION 3.20)\nproject(user C)\n\
             find_package(anabranch-node 0.2 REQUIRED {components})\n\
             add_executable(hostile \"{}\")\ntarget_link_libraries(hostile anabranch::node)\n",
            program.display()
        );
        fs::write(user.join("CMakeLists.txt"), text).expect("it can be written");
    };
    let found = [format!("-DCMAKE_PREFIX_PATH={}", prefix.display())];
    project("");
    build(&cmake, &user, &here.join("user-build"), &found);
    runs(&here.join("user-build/hostile"));
    // A feature that is not in the built library is not found.
    project("COMPONENTS noise");
    let mut missing = Command::new(&cmake);
    missing.arg("-S").arg(&user).arg("-B").arg(here.join("missing")).args(&found);
    let missing = missing.output().expect("it starts");
    assert!(
        !missing.status.success() && String::from_utf8_lossy(&missing.stderr).contains("the feature noise")
    );

    let Some(pkg_config) = find_or_install("pkg-config", "pkg-config") else { return };
    let ask = |what: &[&str]| {
        let path = prefix.join("lib/pkgconfig");
        does(Command::new(&pkg_config).args(what).arg("anabranch-node").env("PKG_CONFIG_PATH", path))
    };
    assert_eq!(ask(&["--modversion"]).trim(), env!("CARGO_PKG_VERSION"));
    let program = here.join("by-pkg-config");
    let flags = ask(&["--cflags", "--libs"]);
    let (source, flags) = (file("tests/hostile.c"), flags.split_whitespace());
    does(Command::new("cc").arg(source).args(flags).arg("-o").arg(&program));
    runs(&program);
}

/// A project that stands in for Zephyr or ESP-IDF: `stand_ins` are its functions, and `component`
/// is the folder that it includes.
fn embeds(name: &str, stand_ins: &str, component: &Path, link: &str) {
    let Some(cmake) = tools() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let here = folder.path();
    let program = file("tests/hostile.c").canonicalize().expect("it is there");
    let text = format!(
        "cmake_minimum_required(VERSION 3.20)\nproject({name} C)\n{stand_ins}\n\
         add_subdirectory(\"{}\" component)\nadd_executable(app \"{}\")\n{link}\n",
        component.display(),
        program.display()
    );
    fs::write(here.join("CMakeLists.txt"), text).expect("it can be written");
    let said = build(&cmake, here, &here.join("build"), &built_before());
    assert!(said.contains("--features c "), "{said}");
    runs(&here.join("build/app"));
    // Checks that cargo gets the default options of Kconfig; nothing is built.
    let mut configure = Command::new(&cmake);
    configure.arg("-S").arg(here).arg("-B").arg(here.join("all")).args(built_before());
    configure.args(["-DCONFIG_ANABRANCH_NODE_NOISE=y", "-DCONFIG_ANABRANCH_NODE_MANIFEST=y"]);
    does(configure.arg("-DCONFIG_ANABRANCH_NODE_TRIPLE=thumbv7em-none-eabihf"));
    let mut dry = Command::new("make");
    dry.args(["-n", "anabranch_node_build"]).current_dir(here.join("all")).env_remove("MAKEFLAGS");
    let said = does(&mut dry);
    assert!(said.contains("c,noise,manifest") && said.contains("--target thumbv7em-none-eabihf"), "{said}");
}

#[test]
fn the_zephyr_module_links_the_library_into_an_application() {
    let stand_ins = r#"
set(CONFIG_ANABRANCH_NODE y)
function(zephyr_library_import name path)
    add_library(${name} STATIC IMPORTED GLOBAL)
    set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${path}")
    set_property(GLOBAL APPEND PROPERTY ZEPHYR_LIBS ${name})
endfunction()
function(zephyr_include_directories)
    set_property(GLOBAL APPEND PROPERTY ZEPHYR_INCLUDES ${ARGN})
endfunction()"#;
    let link = "get_property(libs GLOBAL PROPERTY ZEPHYR_LIBS)\nget_property(includes GLOBAL PROPERTY ZEPHYR_INCLUDES)\n\
                target_link_libraries(app ${libs})\ntarget_include_directories(app PRIVATE ${includes})";
    embeds("zephyr", stand_ins, &packaging("zephyr"), link);
}

#[test]
fn the_esp_idf_component_links_the_library_into_an_application() {
    // A component without sources is an interface library there. ESP-IDF includes its
    // CMakeLists.txt from a macro, so the name is set here.
    let stand_ins = r#"
macro(idf_component_register)
    cmake_parse_arguments(arg "" "" "INCLUDE_DIRS" ${ARGN})
    set(COMPONENT_LIB __idf_anabranch_node)
    add_library(${COMPONENT_LIB} INTERFACE)
    target_include_directories(${COMPONENT_LIB} INTERFACE ${arg_INCLUDE_DIRS})
endmacro()"#;
    let link = "target_link_libraries(app __idf_anabranch_node)";
    embeds("esp", stand_ins, &packaging("esp-idf/anabranch_node"), link);
}

/// Parses Kconfig with `kconfiglib`, as Zephyr does, and YAML with PyYAML:
/// `pip install kconfiglib pyyaml`.
const PARSE: &str = r#"
import os, sys
import kconfiglib, yaml
folder = sys.argv[1]
module = yaml.safe_load(open(f"{folder}/zephyr/module.yml"))
assert module["build"] == {"cmake": "zephyr", "kconfig": "zephyr/Kconfig"}, module
assert os.path.exists(f"{folder}/{module['build']['kconfig']}")
component = yaml.safe_load(open(f"{folder}/esp-idf/anabranch_node/idf_component.yml"))
assert component["version"] == sys.argv[2], component

def triple(kconfig, symbols, on):
    main = sys.argv[3]
    with open(main, "w") as out:
        for symbol in symbols:
            out.write(f"config {symbol}\n\tbool\n" + ("\tdefault y\n" if symbol in on else ""))
        out.write(f'source "{folder}/{kconfig}"\n')
    config = kconfiglib.Kconfig(main, warn_to_stderr=False)
    assert not config.warnings, config.warnings
    if "ANABRANCH_NODE" in config.syms:
        assert config.syms["ANABRANCH_NODE"].str_value == "n", "off unless it is asked for"
        config.syms["ANABRANCH_NODE"].set_value("y")
    for feature in ["NOISE", "MANIFEST"]:
        assert config.syms[f"ANABRANCH_NODE_{feature}"].str_value == "y"
    return config.syms["ANABRANCH_NODE_TRIPLE"].str_value

cortex = ["CPU_CORTEX_M3", "CPU_CORTEX_M4", "CPU_CORTEX_M7", "CPU_CORTEX_M33", "FP_HARDABI"]
for on, expected in [
    ([], ""),
    (["CPU_CORTEX_M3"], "thumbv7m-none-eabi"),
    (["CPU_CORTEX_M4"], "thumbv7em-none-eabi"),
    (["CPU_CORTEX_M7", "FP_HARDABI"], "thumbv7em-none-eabihf"),
    (["CPU_CORTEX_M33", "FP_HARDABI"], "thumbv8m.main-none-eabihf"),
]:
    assert triple("zephyr/Kconfig", cortex, on) == expected, on
chips = ["ESP32", "ESP32S3", "ESP32C5", "ESP32C6", "ESP32H2", "ESP32P4"]
chips = [f"IDF_TARGET_{chip}" for chip in chips] + ["IDF_TARGET_ARCH_XTENSA"]
for on, expected in [("ESP32C6", "riscv32imac-unknown-none-elf"), ("ESP32S3", "xtensa-esp32s3-none-elf")]:
    assert triple("esp-idf/anabranch_node/Kconfig", chips, [f"IDF_TARGET_{on}"]) == expected, on
"#;

#[test]
fn kconfig_and_yaml_say_what_they_should() {
    let python = std::env::var_os("ANABRANCH_KCONFIG_PYTHON").unwrap_or("python3".into());
    let parsers = Command::new(&python).args(["-c", "import kconfiglib, yaml"]).output();
    if !parsers.is_ok_and(|parsers| parsers.status.success()) {
        skipped(
            "a check of Kconfig files: pip install kconfiglib pyyaml, then run this test again, or name the Python that \
             has them in ANABRANCH_KCONFIG_PYTHON",
        );
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut parse = Command::new(python);
    parse
        .args(["-c", PARSE])
        .arg(packaging("."))
        .arg(env!("CARGO_PKG_VERSION"))
        .arg(folder.path().join("Kconfig"));
    does(&mut parse);
}
