# Builds libanabranch_node.a with cargo. Shared by the CMake package, the Zephyr module and the ESP-IDF component.

set(ANABRANCH_NODE_TARGET_DIR "" CACHE PATH "cargo's target directory; empty for one in the build tree")

# The repository.
get_filename_component(ANABRANCH_NODE_ROOT "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(ANABRANCH_NODE_INCLUDE "${ANABRANCH_NODE_ROOT}/crates/embed/include")

# The vector instructions that the cryptographic crates look for on x86-64 are as much text as the rest of them.
set(ANABRANCH_NODE_RUSTFLAGS
    "--cfg curve25519_dalek_backend=\"serial\" --cfg chacha20_force_soft --cfg poly1305_force_soft -C force-unwind-tables=no"
    CACHE STRING "RUSTFLAGS of the anabranch node")

# anabranch_node_configured(FEATURES_VAR)
#
# Sets FEATURES_VAR to the features that the Kconfig options of Zephyr and ESP-IDF ask for.
function(anabranch_node_configured features_var)
    set(features "")
    foreach(feature IN ITEMS noise manifest)
        string(TOUPPER "CONFIG_ANABRANCH_NODE_${feature}" option)
        if(${option})
            list(APPEND features ${feature})
        endif()
    endforeach()
    set(${features_var} "${features}" PARENT_SCOPE)
endfunction()

# anabranch_node_cargo(LIBRARY_VAR
#     [TRIPLE <Rust target>] [TOOLCHAIN <rustup toolchain>] [FEATURES <feature>...])
#
# Adds the target `anabranch_node_build`, and sets LIBRARY_VAR to the path of the archive that it makes. Without TRIPLE it is for
# the machine that builds.
function(anabranch_node_cargo library_var)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "TRIPLE;TOOLCHAIN" "FEATURES")
    find_program(ANABRANCH_NODE_CARGO cargo REQUIRED DOC "Rust's cargo: https://rustup.rs")
    set(target_dir "${ANABRANCH_NODE_TARGET_DIR}")
    if(NOT target_dir)
        set(target_dir "${CMAKE_CURRENT_BINARY_DIR}/cargo")
    endif()
    list(PREPEND arg_FEATURES c)
    list(JOIN arg_FEATURES "," features)
    set(toolchain "")
    if(arg_TOOLCHAIN)
        set(toolchain "+${arg_TOOLCHAIN}")
    endif()
    set(triple "")
    set(folder "${target_dir}")
    if(arg_TRIPLE)
        set(triple --target "${arg_TRIPLE}")
        # Rust's standard library is not distributed for Xtensa.
        if(arg_TRIPLE MATCHES "^xtensa")
            list(APPEND triple -Zbuild-std=core,alloc)
        endif()
        string(APPEND folder "/${arg_TRIPLE}")
    endif()
    set(library "${folder}/embedded/libanabranch_node.a")
    # cargo knows what has changed: it is always asked.
    add_custom_target(
        anabranch_node_build ALL
        COMMAND
            "${CMAKE_COMMAND}" -E env "RUSTFLAGS=${ANABRANCH_NODE_RUSTFLAGS}" "${ANABRANCH_NODE_CARGO}" ${toolchain}
            rustc --quiet --locked --package anabranch-embed --lib --crate-type staticlib --features "${features}"
            --profile embedded --target-dir "${target_dir}" ${triple}
        WORKING_DIRECTORY "${ANABRANCH_NODE_ROOT}"
        BYPRODUCTS "${library}"
        COMMENT "Building libanabranch_node.a with the features ${features}"
        VERBATIM)
    set(${library_var} "${library}" PARENT_SCOPE)
endfunction()
