//! `hikyaku web`: a browser whose connections are carried. It has a new profile of its own, in which the near gateway is
//! the proxy and HTTP/2 and HTTP/3 are off: their windows would limit a download to a fraction of a long path's rate.
//!
//! It also serves the user's own browser: as a proxy for named sites, and for links of the scheme `hikyaku:` (`click`).

mod click;
mod extension;
mod fetch;
mod gateways;
mod handler;
mod pac_file;
mod profile;
mod token;

pub(crate) use pac_file::file_address;
pub(crate) use profile::Browser;

use crate::args::{
    AnyUser, Bind, FarArgs, FarEnd, FarLoopback, Listen, Plan, TransportArgs, far_end, way,
};
use crate::near::{Files, Near, Ready};
use crate::output;
use crate::pac::Site;
use crate::page::Page;
use anyhow::{Context, Error, Result, bail};
use clap::Args;
use click::Click;
use gateways::refusal;
use handler::Handler;
use hikyaku_console::{
    Exit, ExitCode, Form, FormArgs, Interrupt, NoiseArgs, Scope, misuse, with_remedy,
};
use hikyaku_units::DataSize;
use profile::Profile;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use tokio::task::spawn_blocking;

/// Options of `hikyaku web`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, disable_version_flag = true)]
pub struct WebArgs {
    /// Where the far gateway runs.
    #[arg(value_name = "HOST|LINK", required_unless_present = "remove_handler", help = HOST_HELP)]
    destination: Option<OsString>,
    /// The first page, in a browser with a new profile
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// Start no browser: print a proxy configuration for the browser that you use, which sends connections to this host,
    /// and to the names below it, through the gateway
    #[arg(long, value_name = "HOST", value_parser = Site::from_str)]
    #[arg(conflicts_with_all = ["url", "browser", "browser_program", "downloads", "headless"])]
    site: Vec<Site>,
    /// Write an extension for your browser into DIR, which hands downloads of the sites to the gateway: for sites that
    /// speak HTTP/2, whose window limits a download through a proxy
    #[arg(long, value_name = "DIR", requires = "site")]
    extension: Option<PathBuf>,
    /// Port of the proxy for --site, which should stay the same, as the browser remembers it
    #[arg(long = "port", value_name = "PORT", default_value_t = PORT, requires = "site")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    proxy_port: u16,
    /// Let the desktop start this program for links of the form hikyaku:HOST?url=ADDRESS, which any page may have. It asks
    /// you, and then downloads the file through HOST. Links use no other gateways than those that were given here
    #[arg(long, conflicts_with_all = ["url", "site", "remove_handler", "browser", "browser_program"])]
    #[arg(conflicts_with_all = ["downloads", "headless", "extension"])]
    install_handler: bool,
    /// Undo --install-handler, and forget all its hosts
    #[arg(long, conflicts_with_all = ["destination", "url", "site"])]
    remove_handler: bool,
    /// The desktop has opened a terminal for the link: it stays open until Enter is pressed
    #[arg(long, hide = true, conflicts_with_all = ["url", "site", "install_handler", "remove_handler"])]
    in_own_window: bool,
    /// The browser
    #[arg(long, value_enum, default_value_t = Browser::Chromium)]
    browser: Browser,
    /// Its program [default: looked for in PATH]
    #[arg(long = "program", value_name = "PROGRAM")]
    browser_program: Option<OsString>,
    /// Where downloads go [default: where the browser puts them]
    #[arg(long, value_name = "DIR")]
    downloads: Option<PathBuf>,
    /// Show no window
    #[arg(long)]
    headless: bool,
    /// Objects for programs: one when the gateway listens, and one at its end.
    #[command(flatten)]
    form: FormArgs,
    /// The messages about each connection.
    #[command(flatten)]
    pub noise: NoiseArgs,
    #[command(flatten)]
    far: FarArgs,
    #[command(flatten)]
    transport: TransportArgs,
}

/// The help of the destination.
const HOST_HELP: &str = "Where the far gateway runs: [USER@]HOST or ssh://[USER@]HOST[:PORT], where ssh starts it, or \
     hikyaku://HOST[:PORT] for a daemon (hikyaku serve --allow). In its place a link: 'hikyaku:HOST?url=ADDRESS'";

/// The port of the proxy for the user's own browser.
const PORT: u16 = 5210;

const EXAMPLES: &str = "\
Examples:
  hikyaku web me@far https://data.example.org/run7/
  hikyaku web me@far http://10.0.0.7/ --browser firefox --downloads /data
  hikyaku web me@far --site data.example.org
      for your own browser: writes a proxy configuration (PAC), and
      prints how to set it
  hikyaku web me@far --install-handler
      from now on a click on a link hikyaku:far?url=https://example.org/f
      asks you, and downloads the file through far

All pages and downloads of this browser come through the far gateway, which
should be near the web server. The browser has a new profile, which is
removed when the browser is closed: no cookies, no extensions, nothing of
other sessions. Pages of this machine itself (localhost) do not go through
the gateway.

With --site your own browser goes through the gateway for the named hosts, and
direct for all others. If the gateway is not there, it goes direct for all.
The file of the configuration stays the same from run to run. A page shows
each download with its rate, with the buffers that it goes through, and with
what limits it: the path, the browser, the disk, or the server.";

/// What the command line asks for.
enum Wish<'a> {
    /// A browser whose connections are carried, or a proxy for the user's own.
    Carry,
    /// The file of a link.
    Click(Click),
    /// The same in a terminal that the desktop has opened for this link.
    InOwnWindow(&'a OsStr),
    /// That links are handled, and may use this gateway.
    Install(&'a str),
    /// That they are not.
    Remove,
}

impl WebArgs {
    fn wish(&self) -> Result<Wish<'_>> {
        if self.remove_handler {
            return Ok(Wish::Remove);
        }
        let host = self.destination.as_deref().unwrap_or_default();
        let word = host.to_str();
        let has_options =
            self.far != FarArgs::default() || self.transport != TransportArgs::default();
        match (word, &self.url) {
            // With the handler's option a word is a link or nothing.
            (Some(_), None) if self.in_own_window => Ok(Wish::InOwnWindow(host)),
            (Some(word), None) if Click::is_one(word) && !self.install_handler => {
                Ok(Wish::Click(Click::parse(word).map_err(|error| refusal(error.to_string()))?))
            }
            (Some(host), None) if self.install_handler => match has_options {
                true => Err(misuse(
                    "links use HOST without further options",
                    "the options of ssh in its configuration file",
                )),
                false => Ok(Wish::Install(host)),
            },
            (_, url) if url.is_some() || !self.site.is_empty() => Ok(Wish::Carry),
            _ => Err(misuse("no page is named", "a URL, --site or --install-handler")),
        }
    }
}

/// Runs a browser until it is closed, or does what the command line asks for in its place. `memory` is what this process may
/// take. Returns how this process exits.
///
/// # Errors
///
/// The far side cannot be reached or is lost, or the browser cannot be started or fails; or the handler of links cannot be
/// installed, or a link asks for something that it may not have.
pub fn run(args: &WebArgs, memory: DataSize, interrupt: &Interrupt) -> Result<Exit> {
    match args.wish()? {
        Wish::Carry => carry(args, memory, interrupt).map(|()| ExitCode::Success.into()),
        Wish::Click(click) => fetch::run(args, &click, (memory, interrupt)),
        Wish::InOwnWindow(link) => fetch::in_own_window(link),
        Wish::Install(host) => {
            far_end(OsStr::new(host), (&args.far, &args.transport))?;
            Handler::of_user()?.install(host).map(|()| ExitCode::Success.into())
        }
        Wish::Remove => Handler::of_user()?.remove().map(|()| ExitCode::Success.into()),
    }
}

/// A gateway with an HTTP proxy on loopback. Port 0 lets the system choose one.
fn plan(args: &WebArgs, far: FarEnd, port: u16, token: Option<String>) -> Plan {
    Plan {
        far,
        local: Vec::new(),
        remote: Vec::new(),
        socks: Vec::new(),
        http: vec![Listen { bind: Bind::Address(([127, 0, 0, 1], 0).into()), port }],
        far_loopback: FarLoopback::Refused,
        users: AnyUser::Refused,
        sites: args.site.clone(),
        taken: None,
        when_down: args.transport.when_down(),
        token,
    }
}

fn carry(args: &WebArgs, memory: DataSize, interrupt: &Interrupt) -> Result<()> {
    let host = args.destination.as_deref().unwrap_or_default();
    let far = far_end(host, (&args.far, &args.transport))?;
    let (program, port, token) = match &args.url {
        Some(_) => (Some(program(args)?), 0, None),
        None => (None, args.proxy_port, Some(token::of_user()?)),
    };
    let plan = plan(args, far, port, token);
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let scope = interrupt.scope();
    let (options, limits) = ((&args.far, &args.transport), (memory, scope.clone()));
    let way = way(options, &plan.far, limits)?;
    let near = Near { plan: &plan, way, scope: scope.clone(), files: Files::WrittenBack };
    // The profile is removed after the browser has ended, whatever ends it.
    let (mut profile, mut board) = (None, None);
    let form = args.form.form();
    let ended = near.run(async |ready: Ready| {
        board = Some(ready.board.clone());
        let page = ready.page.as_ref().context("there is no proxy")?;
        let (Some(program), Some(url)) = (program, &args.url) else {
            let file = pac_file::write(args.proxy_port, &page.pac())?;
            output::begin(form, &ready, Some(&file), || how_to_set(page, &args.site, &file))?;
            if let Some(folder) = &args.extension {
                extension::write(folder, page, &args.site)?;
                output::say(form, || how_to_load(folder))?;
            }
            return std::future::pending().await;
        };
        let (proxy, _) = ready.ports.first().context("no port is listened on")?;
        let shown = || format!("downloads are shown at {}\n", page.address());
        output::begin(form, &ready, None, shown)?;
        let made = Profile::new(args.browser, *proxy, args.downloads.as_deref())?;
        let command = made.command(&program, url, args.headless);
        profile = Some(made);
        browse(command, form, &scope).await
    });
    // A browser that is left is ended.
    scope.stop();
    drop(profile);
    if let Some(board) = board {
        output::end(form, &board)?;
    }
    interrupt.end_by_signal();
    ended
}

/// What the user does with the proxy configuration.
fn how_to_set(page: &Page, sites: &[Site], file: &Path) -> String {
    let sites: Vec<String> = sites.iter().map(ToString::to_string).collect();
    format!(
        "connections of your browser to {} go through the gateway once it has the proxy configuration:\n\
         Firefox: Settings, Network Settings, Automatic proxy configuration URL:\n  {}\n\
         Chromium and Chrome: start it with\n  --proxy-pac-url={}\n\
         downloads are shown at {}\n\
         where nobody else uses this machine, an address of this run serves any program:\n  {}\n",
        sites.join(", "),
        pac_file::file_address(file),
        pac_file::data_address(&page.pac()),
        page.address(),
        page.pac_address(),
    )
}

/// What the user does with the extension.
fn how_to_load(folder: &Path) -> String {
    format!(
        "the extension is in {}\n\
         Chromium and Chrome: chrome://extensions, Developer mode, Load unpacked\n\
         Firefox: about:debugging, This Firefox, Load Temporary Add-on, manifest.json\n",
        folder.display()
    )
}

/// Runs the browser to its end. The scope ends it, whoever stops that.
async fn browse(mut command: Command, form: Form, scope: &Scope) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let spawned = scope.spawn(&mut command);
    let (mut child, _registration) = spawned.with_context(|| format!("cannot start {name}"))?;
    let runs = || format!("{name} runs; its connections are carried until it is closed\n");
    output::say(form, runs)?;
    let status = spawn_blocking(move || child.wait()).await?;
    let status = status.with_context(|| format!("cannot wait for {name}"))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{name} has failed: {status}"),
    }
}

/// The browser's program.
fn program(args: &WebArgs) -> Result<PathBuf> {
    if let Some(program) = &args.browser_program {
        return Ok(program.into());
    }
    let names = args.browser.programs();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut candidates =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.find(|candidate| candidate.is_file()).ok_or_else(|| {
        let text = format!("no program {} is in PATH", names.join(" or "));
        let error = ExitCode::WillFail.error(text);
        with_remedy(error, Some("try: --program PATH, or another --browser".to_owned()))
    })
}
