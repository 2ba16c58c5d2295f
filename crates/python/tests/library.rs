//! Checks that the library that Python loads is built beside this test, and exports the function
//! that Python calls.

use std::path::Path;

#[test]
fn the_library_has_the_function_that_python_calls() {
    let own = std::env::current_exe().expect("a program has a file");
    let library = own.parent().unwrap_or(Path::new(".")).join("lib_anabranch.so");
    let bytes = std::fs::read(&library).expect("cargo builds it for this test");
    let name = b"PyInit__anabranch";
    assert!(bytes.windows(name.len()).any(|window| window == name), "{}", library.display());
}
