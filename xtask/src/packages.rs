//! The Debian packages that tests and the demo need, installed when we may.

use anyhow::{Result, bail, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// A program, and the Debian package that brings it.
pub struct Need {
    program: &'static str,
    package: &'static str,
}

impl Need {
    /// `program` is in `package`.
    pub const fn new(program: &'static str, package: &'static str) -> Self {
        Self { program, package }
    }

    /// Whether the program is there.
    pub fn is_present(&self) -> bool {
        on_path(self.program)
    }
}

/// What the namespace tests and the comparisons run.
pub const NETWORK_TOOLS: &[Need] = &[
    Need { program: "ip", package: "iproute2" },
    Need { program: "tc", package: "iproute2" },
    Need { program: "iperf3", package: "iperf3" },
    Need { program: "ethtool", package: "ethtool" },
    Need { program: "ssh", package: "openssh-client" },
    Need { program: "sshd", package: "openssh-server" },
    Need { program: "globus-gridftp-server", package: "globus-gridftp-server-progs" },
    Need { program: "openssl", package: "openssl" },
    // libFuzzer is C++.
    Need { program: "c++", package: "g++" },
];

/// Makes every needed program present: installs packages as root, else says what to install.
pub fn ensure_present(needs: &[Need]) -> Result<()> {
    let missing = missing(needs, on_path);
    if missing.is_empty() {
        return Ok(());
    }
    install(&missing)
}

/// Installs packages as root, else says what to install.
pub fn install(packages: &[&str]) -> Result<()> {
    if !is_root() {
        bail!("missing packages\ntry: sudo apt-get install {}", packages.join(" "));
    }
    println!("installing {}", packages.join(" "));
    apt_get(&["update", "-qq"])?;
    apt_get(&[&["install", "-y", "-qq", "--no-install-recommends"], packages].concat())
}

/// Whether this process may change the machine.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program of this name can be started. `sbin` counts: a plain user's path leaves it out.
pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| folder.join(program).is_file())
}

fn missing(needs: &[Need], present: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let mut packages: Vec<&str> =
        needs.iter().filter(|need| !present(need.program)).map(|need| need.package).collect();
    packages.dedup();
    packages
}

fn apt_get(args: &[&str]) -> Result<()> {
    ensure!(Path::new("/usr/bin/apt-get").exists(), "no apt-get here to run {}", args.join(" "));
    let status = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "apt-get {} failed: {status}", args.join(" "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_once() {
        assert_eq!(
            missing(NETWORK_TOOLS, |_| false),
            [
                "iproute2",
                "iperf3",
                "ethtool",
                "openssh-client",
                "openssh-server",
                "globus-gridftp-server-progs",
                "openssl",
                "g++"
            ]
        );
    }

    #[test]
    fn what_is_there_is_not_installed() {
        assert!(missing(NETWORK_TOOLS, |_| true).is_empty());
        assert_eq!(missing(NETWORK_TOOLS, |program| program != "ethtool"), ["ethtool"]);
    }

    #[test]
    fn programs_are_looked_up_on_the_path() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-program"));
    }
}
