//! Contents are copied as by `hikyaku cp` with a list of names.

use crate::ends::Place;
use crate::options::{Copied as Kept, Options, Quick};
use anyhow::Result;
use hikyaku_console::{Audience, ExitCode, Interrupt};
use hikyaku_copy::{By, CopyPlan, Depth, OpenSftp, Preserve, Same, StoredRules, Times};
use hikyaku_reach::WayPlan;
use hikyaku_reach::bootstrap::Asking;

/// What copies contents.
pub(crate) struct Copying<'a> {
    pub(crate) ends: [&'a Place<'a>; 2],
    /// What the one file is called at the target, if it has another name there.
    pub(crate) new_name: Option<&'a [u8]>,
    /// How hosts behind ssh are reached.
    pub(crate) way: &'a WayPlan,
    pub(crate) by: By,
    /// The service that has buckets.
    pub(crate) endpoint: Option<String>,
    pub(crate) audience: Audience,
    pub(crate) interrupt: &'a Interrupt,
    /// The SFTP server of the far side, if contents go by it, too.
    pub(crate) server: Option<OpenSftp<'a>>,
}

/// Bytes and names of a list that go in one copy. A far side that reads them has bounds for both.
const LIST_BYTES_MAX: usize = 16 << 20;
const LIST_NAMES_MAX: usize = 1 << 19;

/// The bytes of the first part of a list, in which a zero byte follows each path.
fn part_len(list: &[u8]) -> usize {
    let ends = list.iter().enumerate().filter(|&(_, &byte)| byte == 0).map(|(at, _)| at + 1);
    let fits = ends.take(LIST_NAMES_MAX).take_while(|&end| end <= LIST_BYTES_MAX);
    fits.last().unwrap_or(list.len())
}

/// What is copied of the names of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    Files,
    /// Directories, without what is in them.
    Dirs,
}

/// Whether all files of a list were copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copied {
    All,
    NotAll,
}

impl Copying<'_> {
    /// Copies the names of a list, in which a zero byte follows each path.
    ///
    /// # Errors
    ///
    /// Those of `hikyaku cp`. A file that could not be copied is none: the copy has told the user of it.
    pub(crate) fn run(&self, what: What, files: &[u8], options: &Options) -> Result<Copied> {
        let (mut rest, mut copied) = (files, Copied::All);
        while !rest.is_empty() {
            let (part, after) = rest.split_at(part_len(rest));
            if self.part(what, part, options)? == Copied::NotAll {
                copied = Copied::NotAll;
            }
            rest = after;
        }
        Ok(copied)
    }

    fn part(&self, what: What, files: &[u8], options: &Options) -> Result<Copied> {
        let plan = self.plan(what, files, options)?;
        Ok(match hikyaku_copy::copy(&plan, self.interrupt, self.server)? {
            ExitCode::Success => Copied::All,
            _ => Copied::NotAll,
        })
    }

    fn plan(&self, what: What, files: &[u8], options: &Options) -> Result<CopyPlan> {
        let names = match self.new_name {
            Some(name) => [files.strip_suffix(b"\0").unwrap_or(files), name],
            None => [&b""[..]; 2],
        };
        let [source, target] = self.ends;
        let mut plan = CopyPlan::new(vec![source.location(names[0])], target.location(names[1]));
        if self.new_name.is_none() {
            plan.options.files = hikyaku_copy::names((files, 0), &"the list")?;
        }
        if what == What::Dirs {
            plan.options.rules.depth = Depth::Tree;
            plan.options.patterns.exclude = vec!["*".parse()?];
        }
        plan.options.rules.preserve = match options.copied {
            Kept::Nothing => Preserve::Nothing,
            Kept::Time => Preserve::Times,
            Kept::All => Preserve::All,
        };
        let mut way = self.way.clone();
        if self.audience == Audience::Quiet {
            (way.ssh.quiet, way.asking) = (true, Asking::Never);
        }
        (plan.transport.way, plan.transport.by) = (way, self.by);
        plan.transport.endpoint.clone_from(&self.endpoint);
        plan.report.audience = self.audience;
        plan.stored = StoredRules {
            // All names of the list have to be copied. A repeated copy leaves out files that an earlier attempt has copied.
            same: match options.quick {
                Quick::SizeAndTime | Quick::Size if options.keeps_times => Same::SizeAndTime,
                _ => Same::Never,
            },
            times: if options.keeps_times { Times::Kept } else { Times::New },
        };
        Ok(plan)
    }
}
