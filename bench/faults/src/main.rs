//! `faults`: the rigs on the command line. `cargo xtask faults` and `cargo xtask crash` call it.
#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod command;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> std::process::ExitCode {
    command::main()
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() -> std::process::ExitCode {
    eprintln!("faults: the rigs know the calls of x86_64 Linux only");
    std::process::ExitCode::FAILURE
}
