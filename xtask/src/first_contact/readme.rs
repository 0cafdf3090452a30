//! The commands of README.md from the requirements to the first copy.

use anyhow::{Context, Result};

/// Sections with the commands, in the order in which a reader meets them.
const SECTIONS: [&str; 2] = ["## Install", "## First copy"];
/// Begin of the line that installs the requirements.
const REQUIREMENTS: &str = "sudo apt-get install ";
const CLONE: &str = "git clone ";
/// Begin of the last line.
const FIRST_COPY: &str = "hikyaku cp ";
/// Lines that do something else.
const BESIDE: [&str; 2] = ["cargo xtask demo", "cargo xtask test"];

/// What a new user types.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Commands {
    /// The line that installs what README.md requires.
    pub(super) requirements: String,
    /// Where the repository is cloned from.
    pub(super) address: String,
    /// The lines from the clone to the first copy.
    pub(super) steps: Vec<String>,
}

impl Commands {
    /// Those of a text.
    pub(super) fn of(readme: &str) -> Result<Self> {
        let lines: Vec<String> =
            SECTIONS.iter().flat_map(|section| lines(readme, section)).collect();
        let requirements = lines.iter().find(|line| line.starts_with(REQUIREMENTS));
        let requirements = requirements.context("README.md has no line 'sudo apt-get install'")?;
        let clone = lines.iter().position(|line| line.starts_with(CLONE));
        let clone = clone.context("README.md has no line 'git clone'")?;
        let copy = lines.iter().position(|line| line.starts_with(FIRST_COPY));
        let copy = copy.context("README.md has no line 'hikyaku cp'")?;
        let steps = lines.get(clone..=copy).context("README.md copies before it clones")?;
        let is_step = |line: &&String| !BESIDE.iter().any(|other| line.starts_with(other));
        let address = lines[clone][CLONE.len()..].split_whitespace().next().unwrap_or_default();
        Ok(Self {
            requirements: requirements.clone(),
            address: address.to_owned(),
            steps: steps.iter().filter(is_step).cloned().collect(),
        })
    }

    /// Names of the required packages.
    pub(super) fn packages(&self) -> impl Iterator<Item = &str> {
        self.requirements[REQUIREMENTS.len()..].split_whitespace()
    }
}

/// The lines of a section's `sh` blocks, without their comments.
fn lines(readme: &str, section: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut is_in_section, mut is_in_block) = (false, false);
    for line in readme.lines() {
        if line.starts_with("```") {
            is_in_block = !is_in_block && line.starts_with("```sh");
        } else if is_in_block && is_in_section {
            let command = line.split("  #").next().unwrap_or_default().trim();
            if !command.is_empty() && !command.starts_with('#') {
                found.push(command.to_owned());
            }
        } else if line.starts_with('#') && !is_in_block {
            is_in_section = line == section;
        }
    }
    found
}

#[cfg(test)]
mod tests;
