//! What a click on a `hikyaku:` link does: it asks the user, connects to the gateway, and lets `hikyaku get` fetch the file
//! through it.
//!
//! A page chooses the address of the file, and the server its bytes and its name, as with any download. The folder and the
//! gateway are the user's. No file that exists is replaced.

use super::click::Click;
use super::gateways::{Gateways, refusal};
use super::handler::user_folder;
use super::{Context, Result, WebArgs, far_end, plan};
use crate::near::{Files, Near, Ready};
use hikyaku_console::{Exit, ExitCode, Interrupt, Scope, print, with_remedy};
use hikyaku_units::DataSize;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, IsTerminal, Read, stdin};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::task::spawn_blocking;

/// Bytes of an answer of the user at most.
const ANSWER_BYTES_MAX: u64 = 1000;
/// Characters of an address that are shown.
const SHOWN_MAX: usize = 400;

/// Fetches the file of a link. Returns the exit of `hikyaku get`.
///
/// # Errors
///
/// The user does not know the gateway or cannot be asked, or the gateway is not reached.
pub(super) fn run(
    args: &WebArgs,
    click: &Click,
    (memory, interrupt): (DataSize, &Interrupt),
) -> Result<Exit> {
    let known = Gateways::of_user()?;
    let gateway = known.find(click.gateway.as_deref())?;
    let folder = args.downloads.clone().map_or_else(downloads, Ok)?;
    if !is_wanted(&question(click, gateway, &folder))? {
        print("nothing is downloaded\n")?;
        return Ok(ExitCode::Success.into());
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let plan = plan(args, far_end(OsStr::new(gateway), (&args.far, &args.transport))?, 0, None);
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let scope = interrupt.scope();
    let (options, limits) = ((&args.far, &args.transport), (memory, scope.clone()));
    let way = super::way(options, &plan.far, limits)?;
    let near = Near { plan: &plan, way, scope: scope.clone(), files: Files::Left };
    let mut exit = Exit::from(ExitCode::Failed);
    let ended = near.run(async |ready: Ready| {
        let (proxy, _) = ready.ports.first().context("no port is listened on")?;
        exit = fetch(get(click, *proxy, &folder)?, &scope).await?;
        Ok(())
    });
    scope.stop();
    interrupt.end_by_signal();
    ended.map(|()| exit)
}

/// Runs this program once more for a link, in a terminal that was opened for it: what it says can be read until the user
/// presses Enter.
///
/// # Errors
///
/// It cannot be started.
pub(super) fn in_own_window(link: &OsStr) -> Result<Exit> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let status = Command::new(program).arg("web").arg("--").arg(link).status();
    let status = status.context("cannot start the download")?;
    if stdin().is_terminal() {
        print("press Enter to close this window ")?;
        answer()?;
    }
    Ok(Exit::of_command(status))
}

/// What the user is asked. The host stands last, so that a long address does not move it out of sight.
fn question(click: &Click, gateway: &str, folder: &Path) -> String {
    // An address is visible ASCII.
    let mut address = click.link.to_string();
    if address.len() > SHOWN_MAX {
        address.truncate(SHOWN_MAX);
        address.push_str("...");
    }
    format!(
        "A link asks for this file:\n  {address}\n  from:    {}\n  through: {gateway}\n  into:    {}\nDownload it? [y/N] ",
        click.link.target,
        folder.display(),
    )
}

/// Asks the user. There is no way to answer in advance: any page may hold a link.
fn is_wanted(question: &str) -> Result<bool> {
    if !stdin().is_terminal() {
        let error = refusal("you cannot be asked: standard input is not a terminal".to_owned());
        let remedy =
            "try: open the link from a terminal: hikyaku web 'hikyaku:GATEWAY?url=ADDRESS'";
        return Err(with_remedy(error, Some(remedy)));
    }
    print(question)?;
    let answer = answer()?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn answer() -> Result<String> {
    let mut line = Vec::new();
    let mut input = stdin().lock().take(ANSWER_BYTES_MAX);
    input.read_until(b'\n', &mut line).context("cannot read the answer")?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// The command that fetches the file. Every word that comes from the link is checked ([`Click::parse`]), and the address is
/// no option wherever it begins.
fn get(click: &Click, proxy: SocketAddr, folder: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(["get", "--proxy", &format!("http://{proxy}"), "--dir"]).arg(folder);
    if let Some(digest) = &click.sha256 {
        command.args(["--sha256", digest]);
    }
    command.arg("--").arg(click.link.to_string());
    Ok(command)
}

/// Runs the command to its end. The scope ends it, whoever stops that.
async fn fetch(mut command: Command, scope: &Scope) -> Result<Exit> {
    let spawned = scope.spawn(&mut command);
    let (mut child, _registration) = spawned.context("cannot start the download")?;
    let status = spawn_blocking(move || child.wait()).await?;
    status.context("cannot wait for the download").map(Exit::of_command)
}

/// The user's folder for downloads: `XDG_DOWNLOAD_DIR` of `user-dirs.dirs` (xdg-user-dirs), or `Downloads` at home.
fn downloads() -> Result<PathBuf> {
    let home = user_folder("HOME", "")?;
    let list = user_folder("XDG_CONFIG_HOME", ".config")?.join("user-dirs.dirs");
    let text = fs::read_to_string(list).unwrap_or_default();
    Ok(download_folder(&text, &home).unwrap_or_else(|| home.join("Downloads")))
}

/// The folder that a `user-dirs.dirs` names: `"$HOME/PATH"` or `"/PATH"`.
// fuzz: none, the user's own file
fn download_folder(text: &str, home: &Path) -> Option<PathBuf> {
    let mut lines = text.lines().filter_map(|line| line.trim().strip_prefix("XDG_DOWNLOAD_DIR="));
    let value = lines.next_back()?.strip_prefix('"')?.strip_suffix('"')?;
    let path = match value.strip_prefix("$HOME") {
        Some(rest) => home.join(rest.trim_start_matches('/')),
        None => PathBuf::from(value),
    };
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_go_where_the_user_has_them() {
        let home = Path::new("/users/me");
        for (text, wanted) in [
            ("", None),
            ("# XDG_DOWNLOAD_DIR=\"/a\"\n", None),
            ("XDG_DOWNLOAD_DIR=\"$HOME/Got it\"\n", Some("/users/me/Got it")),
            ("XDG_DESKTOP_DIR=\"/d\"\nXDG_DOWNLOAD_DIR=\"/data\"\n", Some("/data")),
            ("XDG_DOWNLOAD_DIR=\"data\"\n", None),
        ] {
            assert_eq!(download_folder(text, home).as_deref(), wanted.map(Path::new), "{text:?}");
        }
    }

    #[test]
    fn the_words_of_a_link_are_no_options() {
        let text = format!("hikyaku:far?sha256={}&url=http://a/--output=b", "0a".repeat(32));
        let click = Click::parse(&text).unwrap();
        let command = get(&click, ([127, 0, 0, 1], 3128).into(), Path::new("/d")).unwrap();
        let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        let digest = "0a".repeat(32);
        let wanted = [
            "get",
            "--proxy",
            "http://127.0.0.1:3128",
            "--dir",
            "/d",
            "--sha256",
            &digest,
            "--",
            "http://a/--output=b",
        ];
        assert_eq!(words, wanted);
        let long = Click::parse(&format!("hikyaku:?url=http://evil/{}", "a".repeat(9000))).unwrap();
        let question = question(&long, "far", Path::new("/d"));
        assert!(question.len() < 600 && question.contains("from:    evil:80\n"), "{question}");
    }
}
