//! Builds programs of the workspace.

use crate::root::workspace;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// How the compiler works on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// Soon done.
    Dev,
    /// What users run.
    Release,
}

/// What is to be built.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// How.
    pub profile: Profile,
    /// The packages, built all at once.
    pub packages: &'a [&'a str],
}

impl Build<'_> {
    /// Builds it, its progress in full view on standard error. Gives the path of one of its programs.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--message-format=json-render-diagnostics"]);
        if self.profile == Profile::Release {
            build.arg("--release");
        }
        for package in self.packages {
            build.args(["--package", package]);
        }
        let output = build
            .current_dir(workspace())
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        ensure!(output.status.success(), "{name} does not build");
        executable(&String::from_utf8_lossy(&output.stdout), name)
            .with_context(|| format!("cargo built no {name}"))
    }
}

/// The path of a program in cargo's messages, one JSON object a line.
fn executable(messages: &str, program: &str) -> Option<PathBuf> {
    messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let path = message["executable"].as_str()?;
        (message["target"]["name"] == program).then(|| path.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_in_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"hikyaku"},"executable":"t/release/hikyaku"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "hikyaku"), Some("t/release/hikyaku".into()));
        assert_eq!(executable(messages, "other"), None);
    }
}
