//! The option for cookies, of all commands that read files of web servers.

use anyhow::Result;
use clap::Args;
use hikyaku_console::with_remedy;
use hikyaku_http::Cookies;
use std::path::PathBuf;
use std::time::SystemTime;

/// The option for the cookies of a browser.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct CookiesArgs {
    /// Send the cookies of this file to web servers, in the format cookies.txt of curl, wget and browsers
    #[arg(long, value_name = "FILE", alias = "load-cookies")]
    cookies: Option<PathBuf>,
}

impl CookiesArgs {
    /// The cookies of the file, which may be a pipe and can then be read once only. None without the option.
    ///
    /// # Errors
    ///
    /// The file cannot be used.
    pub fn read(&self) -> Result<Cookies> {
        let Some(path) = &self.cookies else { return Ok(Cookies::default()) };
        Cookies::read(path, SystemTime::now()).map_err(|error| {
            let remedy = error.remedy();
            with_remedy(error.into(), remedy)
        })
    }
}
