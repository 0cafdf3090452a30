//! What packages are made for, and how their program is built.

use super::{building::Crates, tools};
use crate::process::Finished;
use crate::{run, workspace};
use anyhow::{Result, bail, ensure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A kind of machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// As rustc names it.
    pub triple: &'static str,
    /// The processor, as `uname -m` names it.
    pub processor: &'static str,
    /// The processor, as Debian names it.
    pub debian: &'static str,
    /// The C library.
    pub libc: Libc,
}

/// The search path with which cargo finds what a program is built with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tools(OsString);

/// The C library of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Libc {
    /// Linked into the program, which then runs on every Linux.
    Musl,
    /// That of the system; the program runs where it is at least as new as here.
    Glibc,
}

/// The kinds of machine that packages are made for. The first is the default.
pub const TARGETS: [Target; 4] = [
    target("x86_64-unknown-linux-musl", "x86_64", "amd64", Libc::Musl),
    target("aarch64-unknown-linux-musl", "aarch64", "arm64", Libc::Musl),
    target("x86_64-unknown-linux-gnu", "x86_64", "amd64", Libc::Glibc),
    target("aarch64-unknown-linux-gnu", "aarch64", "arm64", Libc::Glibc),
];

const fn target(
    triple: &'static str,
    processor: &'static str,
    debian: &'static str,
    libc: Libc,
) -> Target {
    Target { triple, processor, debian, libc }
}

/// The crate of the program.
const PACKAGE: &str = "hikyaku-cli";
/// How long a build takes without crates that were built before.
const USUAL: &str = "about 12 min on two cores, with a line a minute";
/// One job of link-time optimisation over all crates takes minutes.
const BUILD_TIME_MAX: Duration = Duration::from_secs(3600);

impl Libc {
    /// The kind of program, in words.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Musl => "static",
            Self::Glibc => "dynamic",
        }
    }
}

impl Target {
    /// The one of this name (`x86_64-musl`) or triple.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name_of_flag() == name || target.triple == name)
    }

    /// The one that this program was built for, with the C library of the system.
    pub fn of_this_machine() -> Option<Self> {
        let own = |target: &Self| {
            target.processor == std::env::consts::ARCH && target.libc == Libc::Glibc
        };
        TARGETS.into_iter().find(own)
    }

    /// In the name of a package: `linux-x86_64`, or `linux-x86_64-gnu` if it needs the system's C library.
    pub fn name(&self) -> String {
        let suffix = match self.libc {
            Libc::Musl => "",
            Libc::Glibc => "-gnu",
        };
        format!("linux-{}{suffix}", self.processor)
    }

    /// As a user types it: `x86_64-musl`.
    pub fn name_of_flag(&self) -> String {
        let libc = match self.libc {
            Libc::Musl => "musl",
            Libc::Glibc => "gnu",
        };
        format!("{}-{libc}", self.processor)
    }

    /// What its programs are built with. Missing tools are fetched.
    ///
    /// # Errors
    ///
    /// A tool cannot be had.
    pub fn tools(&self) -> Result<Tools> {
        match self.libc {
            Libc::Musl => tools::search_path(self.triple).map(Tools),
            Libc::Glibc => Ok(Tools(std::env::var_os("PATH").unwrap_or_default())),
        }
    }

    /// Builds the program for it with the profile `dist`, and prints how far that is. Returns its path.
    ///
    /// # Errors
    ///
    /// The program does not build.
    pub fn build(&self, tools: &Tools) -> Result<PathBuf> {
        let crates = Crates::of(&mut cargo(), PACKAGE, self.triple)?;
        let (kind, folder) = (self.libc.kind(), target_folder());
        let (processor, count) = (self.processor, crates.count());
        println!("building a {kind} hikyaku for {processor} in {}", folder.display());
        println!("{count} crates: {USUAL}");
        let mut cargo = cargo();
        match self.libc {
            // zig is a C compiler and a linker with musl for all processors.
            Libc::Musl => {
                cargo.arg("zigbuild");
            }
            Libc::Glibc if self.processor == std::env::consts::ARCH => {
                cargo.arg("build");
            }
            Libc::Glibc => bail!(
                "{} is built on such a machine only\ntry: --target {}-musl",
                self.triple,
                self.processor
            ),
        }
        cargo.args(["--profile", "dist", "--locked", "--package", PACKAGE]);
        cargo.args(["--bin", "hikyaku", "--target", self.triple]);
        cargo.arg("--config").arg(self.without_own_paths());
        cargo.env("PATH", &tools.0).current_dir(workspace());
        let status = crates.build(&mut cargo)?;
        ensure!(status.success(), "hikyaku does not build for {}", self.triple);
        let program = target_folder().join(self.triple).join("dist/hikyaku");
        ensure!(program.is_file(), "cargo built no {}", program.display());
        Ok(program)
    }

    /// A setting of cargo: paths of this machine do not get into the program.
    fn without_own_paths(&self) -> String {
        let flag =
            |path: PathBuf, name: &str| format!("'--remap-path-prefix={}={name}'", path.display());
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let cargo =
            std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
        let flags = [flag(workspace(), "hikyaku"), flag(cargo.join("registry/src"), "registry")];
        format!("target.{}.rustflags=[{}]", self.triple, flags.join(","))
    }
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Where cargo puts what it builds.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace().join("target"), |folder| workspace().join(folder))
}

/// Runs a program that was built, for its output. `None` if it is for another kind of machine.
pub(super) fn asked(program: &Path, arguments: &[&str]) -> Result<Option<Finished>> {
    let runs = Command::new(program).arg("--version").output();
    if !runs.is_ok_and(|output| output.status.success()) {
        return Ok(None);
    }
    run(Command::new(program).args(arguments), BUILD_TIME_MAX).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_short_and_a_long_name() {
        for target in TARGETS {
            assert_eq!(Target::named(&target.name_of_flag()), Some(target));
            assert_eq!(Target::named(target.triple), Some(target));
        }
        assert_eq!(Target::named("vax"), None);
        assert_eq!(TARGETS[0].name(), "linux-x86_64");
    }
}
