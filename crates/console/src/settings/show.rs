//! `hikyaku config`: which settings there are, what holds, and where it comes from.

use super::key::{Keys, Setting};
use super::{Settings, SettingsError, path};
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
    /// Print what each setting means
    List,
}

const EXAMPLE: &str = "\
The file is hikyaku/config.toml below $XDG_CONFIG_HOME, or below ~/.config
if that is not set:
  [default]                      # all hosts
  window = \"256MB\"

  [host.\"*.example.org\"]         # hosts as typed; the longest pattern wins
  rate = \"800m\"
  udp-ports = \"50000-50100\"

A flag of the command line comes before the file.";

/// What is shown, in lines.
///
/// # Errors
/// The settings file cannot be read, or has a mistake.
pub fn config(args: &ConfigArgs, keys: &Keys) -> Result<String, SettingsError> {
    match &args.what {
        What::Show { host } => show(host.as_deref().unwrap_or_default(), keys),
        What::List => Ok(list(keys)),
    }
}

fn show(host: &str, keys: &Keys) -> Result<String, SettingsError> {
    let settings = Settings::of_user(keys)?;
    let mut lines = Vec::new();
    if let Some(path) = path() {
        let is_there = if path.exists() { "" } else { " (does not exist)" };
        lines.push(format!("# {}{is_there}\n", path.display()));
    }
    for key in keys.all() {
        let (value, from) = match settings.find(key.name, host) {
            Some((value, section)) => (value, format!("[{}]", section.title)),
            None => (key.default, "built in".to_owned()),
        };
        lines.push(format!("{:12} {value:44} {from}; flag {}\n", key.name, key.flag));
    }
    Ok(lines.concat())
}

fn list(keys: &Keys) -> String {
    let line = |key: &Setting| format!("{:12} {} [default: {}]\n", key.name, key.help, key.default);
    keys.all().iter().map(line).collect()
}
