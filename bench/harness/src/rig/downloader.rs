//! Programs that download a file from a web server: `hikyaku get` and others.

use crate::rig::context::Ctx;
use crate::rig::line::Line;
use crate::rig::web::{NAME, Web};
use anyhow::Result;
use std::path::Path;

/// A program, and how many connections it uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Downloader {
    /// Ours, which finds the number.
    Tuned,
    /// Ours with a fixed number.
    Fixed(u32),
    /// With 16, its maximum for a server.
    Aria2c,
    /// With 16.
    Axel,
    /// With one.
    Curl,
}

impl Downloader {
    /// A short name, fit for a file's.
    pub(crate) fn id(self) -> String {
        match self {
            Self::Tuned => "get".to_owned(),
            Self::Fixed(n) => format!("n{n}"),
            Self::Aria2c => "aria2c".to_owned(),
            Self::Axel => "axel".to_owned(),
            Self::Curl => "curl".to_owned(),
        }
    }

    /// The command as people write it.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Tuned => "hikyaku get".to_owned(),
            Self::Fixed(n) => format!("hikyaku get -n {n}"),
            Self::Aria2c => "aria2c -x16 -s16 -k1M".to_owned(),
            Self::Axel => "axel -n 16".to_owned(),
            Self::Curl => "curl".to_owned(),
        }
    }

    /// The command that downloads the file of `web` into `folder`. Ours prints events.
    pub(crate) fn line(self, ctx: &Ctx, web: &Web, folder: &Path) -> Result<Line> {
        let (url, file) = (web.url(), folder.join(NAME));
        let ours = || -> Result<Line> {
            Ok(Line::new(ctx.hikyaku()?).words("get --json-lines -d").arg(folder))
        };
        Ok(match self {
            Self::Tuned => ours()?.arg(url),
            Self::Fixed(n) => ours()?.args(["-n", &n.to_string(), &url]),
            Self::Aria2c => {
                let line = Line::new("aria2c").words("-q --no-conf -x16 -s16 -k1M");
                line.words("--file-allocation=none -o").arg(NAME).arg("-d").arg(folder).arg(url)
            }
            Self::Axel => Line::new("axel").words("-q -n 16 -o").arg(file).arg(url),
            Self::Curl => Line::new("curl").words("-sS -o").arg(file).arg(url),
        })
    }
}
