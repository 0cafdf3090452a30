//! Shell completion scripts, generated from the definition of the command line.

use crate::alias::Alias;
use crate::args;
use anyhow::{Context, Result};
use clap::ValueEnum;
use clap_complete::Shell;
use hikyaku_console::{misuse, print};
use hikyaku_fs::write_whole;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Options of `hikyaku completions`.
#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell of the script; with --install the shell of $SHELL, if none is given
    #[arg(required_unless_present = "install")]
    shell: Option<Shell>,
    /// Write the scripts of hikyaku, hscp and hsftp into the user's folder of the shell, in place of printing one
    #[arg(long, conflicts_with = "command")]
    install: bool,
    /// The command of the script
    #[arg(long, value_name = "NAME", value_parser = ["hikyaku", "hscp", "hsftp"], default_value = OWN)]
    command: String,
}

const OWN: &str = "hikyaku";

/// Prints a script, or installs all of a shell.
pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    match args.shell {
        Some(shell) if !args.install => print(script(shell, &args.command)),
        shell => install(shell.map_or_else(of_user, Ok)?, |name| std::env::var_os(name)),
    }
}

/// Generates the script of a command.
pub(crate) fn script(shell: Shell, name: &str) -> Vec<u8> {
    let mut command = Alias::of(name).map_or_else(args::command, Alias::command);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    script
}

/// The shell of the user.
fn of_user() -> Result<Shell> {
    let path = std::env::var_os("SHELL").unwrap_or_default();
    let name = Path::new(&path).file_name().unwrap_or_default().to_string_lossy();
    Shell::from_str(&name, true).map_err(|_| {
        let text = format!("no completions are known for the shell '{name}' of $SHELL");
        misuse(text, "hikyaku completions --install bash")
    })
}

/// Writes the scripts of all commands, and prints their paths.
fn install(shell: Shell, variable: impl Fn(&str) -> Option<OsString>) -> Result<()> {
    let folder = folder(shell, variable)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for name in names() {
        let path = folder.join(file(shell, name));
        write_whole(&path, &script(shell, name))
            .with_context(|| format!("cannot write {}", path.display()))?;
        print(format!("wrote {}\n", path.display()))?;
    }
    if shell == Shell::Zsh {
        let folder = folder.display();
        print(format!("to ~/.zshrc, before compinit: fpath=({folder} $fpath)\n"))?;
    }
    Ok(())
}

fn names() -> impl Iterator<Item = &'static str> {
    [OWN].into_iter().chain(Alias::ALL.map(Alias::name))
}

/// The folder of the user's completions.
fn folder(shell: Shell, variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").context("HOME is not set");
    let of = |name, below: &str| -> Result<PathBuf> {
        absolute(name).map_or_else(|| Ok(home()?.join(below)), Ok)
    };
    let data = || of("XDG_DATA_HOME", ".local/share");
    Ok(match shell {
        Shell::Bash => match absolute("BASH_COMPLETION_USER_DIR") {
            Some(own) => own.join("completions"),
            None => data()?.join("bash-completion/completions"),
        },
        Shell::Zsh => data()?.join("zsh/site-functions"),
        Shell::Fish => of("XDG_CONFIG_HOME", ".config")?.join("fish/completions"),
        other => {
            let text = format!("no folder for completions of {other} is known");
            return Err(misuse(text, format!("hikyaku completions {other} > FILE")));
        }
    })
}

/// The name of a script, by which the shell finds it.
fn file(shell: Shell, name: &str) -> String {
    match shell {
        Shell::Zsh => format!("_{name}"),
        Shell::Fish => format!("{name}.fish"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_finds_the_scripts_in_the_users_folder() {
        let root = std::env::temp_dir().join(format!("hikyaku-completions-{}", std::process::id()));
        let at = |name: &str| Some(root.join(name).into_os_string());
        let bare = |name: &str| if name == "HOME" { at("home") } else { None };
        let set = |name: &str| at(name);
        for (shell, in_home, named, file) in [
            (
                Shell::Bash,
                ".local/share/bash-completion/completions",
                "BASH_COMPLETION_USER_DIR/completions",
                "hscp",
            ),
            (
                Shell::Zsh,
                ".local/share/zsh/site-functions",
                "XDG_DATA_HOME/zsh/site-functions",
                "_hscp",
            ),
            (
                Shell::Fish,
                ".config/fish/completions",
                "XDG_CONFIG_HOME/fish/completions",
                "hscp.fish",
            ),
        ] {
            assert_eq!(folder(shell, bare).unwrap(), root.join("home").join(in_home));
            assert_eq!(folder(shell, set).unwrap(), root.join(named));
            // Twice: a script that is there is replaced.
            install(shell, bare).unwrap();
            install(shell, bare).unwrap();
            let folder = root.join("home").join(in_home);
            assert_eq!(fs::read(folder.join(file)).unwrap(), script(shell, "hscp"), "{shell}");
            assert_eq!(fs::read_dir(folder).unwrap().count(), names().count(), "{shell}");
        }
        assert!(install(Shell::PowerShell, bare).is_err());
        fs::remove_dir_all(&root).unwrap();
    }
}
