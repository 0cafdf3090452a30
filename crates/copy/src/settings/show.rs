//! `hikyaku config show`: what holds, and who says so.

use super::keys::KEYS;
use super::{Settings, path};
use anyhow::Result;
use clap::{Args, Subcommand};

/// Show the settings of the config file
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct ConfigArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Debug, Subcommand)]
enum What {
    /// Print each setting with its value, and where the value comes from
    Show {
        /// For copies to and from this host
        host: Option<String>,
    },
}

const EXAMPLE: &str = "\
The file is $XDG_CONFIG_HOME/hikyaku/config.toml, mostly ~/.config/hikyaku/config.toml:
  [default]                      # all hosts
  window = \"256MB\"

  [host.\"*.example.org\"]         # hosts as you write them; the longest pattern wins
  rate = \"800m\"
  udp-ports = \"50000-50100\"

A flag of the command line comes before the file.";

/// What is shown, in lines.
pub fn config(args: &ConfigArgs) -> Result<String> {
    let What::Show { host } = &args.what;
    let settings = Settings::of_user()?;
    let mut lines = Vec::new();
    if let Some(path) = path() {
        let is_there = if path.exists() { "" } else { " (not there)" };
        lines.push(format!("# {}{is_there}\n", path.display()));
    }
    let host = host.as_deref().unwrap_or_default();
    for key in &KEYS {
        let (value, from) = match settings.find(key.name, host) {
            Some((value, section)) => (value, format!("[{section}]")),
            None => (key.default, "built in".to_owned()),
        };
        lines.push(format!("{:12} {value:44} {from}; flag {}\n", key.name, key.flag));
    }
    Ok(lines.concat())
}
