//! Link arguments of the bare hook: see `src/main.rs`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(watchkeeper_bare)");
    println!("cargo::rustc-check-cfg=cfg(watchkeeper_portable)");
    if std::env::var_os("CARGO_CFG_WATCHKEEPER_BARE").is_some() {
        for argument in [
            // No C library: `_start` is in src/linux/entry.rs.
            "-nostdlib",
            "-nostartfiles",
            "-static",
            "-no-pie",
            // Fewer and fuller pages: each page touched costs a fault at every start.
            "-Wl,-z,noseparate-code",
            "-Wl,-z,noexecstack",
            "-Wl,--build-id=none",
            "-Wl,--gc-sections",
        ] {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}
