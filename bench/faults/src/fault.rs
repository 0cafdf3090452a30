//! A fault: at which call, which error, how long. It has a name that can be typed: `write@target#2=ENOSPC!`.

use crate::calls::Call;
use crate::place::Area;
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use std::fmt;
use std::str::FromStr;

/// What is to go wrong in a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The program is killed before the call of this number, counted from 1 over all of them.
    Kill(u32),
    /// From this write at the target on there is no room, neither there nor for the program's state.
    Full(u32),
    /// A call fails.
    Call {
        /// Which kind of call.
        call: Call,
        /// On which files.
        area: Area,
        /// Which of them, from 1.
        nth: u32,
        /// How.
        error: Wrong,
        /// How often.
        lasting: Lasting,
    },
}

/// How a call goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    /// An error.
    Error(Errno),
    /// Half of what was asked for.
    Short,
    /// The program is killed before it.
    Killed,
}

/// How often it goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lasting {
    /// Once; the next call of the kind is sound.
    Once,
    /// From that call on all of the kind.
    ForGood,
}

const ERRORS: [(Errno, &str); 6] = [
    (Errno::EIO, "EIO"),
    (Errno::ENOSPC, "ENOSPC"),
    (Errno::EDQUOT, "EDQUOT"),
    (Errno::EINTR, "EINTR"),
    (Errno::EAGAIN, "EAGAIN"),
    (Errno::EMFILE, "EMFILE"),
];

/// What a kind of call may answer, by its manual page.
pub(crate) fn possible(call: Call, area: Area) -> Vec<Wrong> {
    use Errno::{EDQUOT, EINTR, EIO, EMFILE, ENOSPC};
    let errors: &[Errno] = match call {
        Call::Open => &[EIO, EINTR, EMFILE],
        Call::Create => &[EIO, ENOSPC, EDQUOT, EINTR, EMFILE],
        Call::Read => &[EIO, EINTR],
        Call::Write
        | Call::Fsync
        | Call::Fdatasync
        | Call::Syncfs
        | Call::SyncRange
        | Call::CopyRange
        | Call::Fallocate
        | Call::Truncate => &[EIO, ENOSPC, EDQUOT, EINTR],
        Call::Close if area == Area::Source => &[EIO, EINTR],
        Call::Close => &[EIO, ENOSPC, EDQUOT, EINTR],
        Call::Rename | Call::Link | Call::Symlink | Call::Mkdir | Call::SetAttribute => {
            &[EIO, ENOSPC, EDQUOT]
        }
        Call::Chmod | Call::Chown | Call::Utimes => &[EIO, ENOSPC],
        Call::Lock => &[],
        _ => &[EIO],
    };
    let mut all: Vec<Wrong> = errors.iter().copied().map(Wrong::Error).collect();
    if matches!(call, Call::Read | Call::Write) {
        all.push(Wrong::Short);
    }
    all
}

impl Wrong {
    /// Whether this may last: a call that is interrupted for ever is no kernel's.
    pub(crate) fn may_last(self) -> bool {
        self != Self::Error(Errno::EINTR)
    }

    /// Whether what a sync was asked to keep is lost: the kernel says so once and forgets it.
    pub(crate) fn loses(self) -> bool {
        matches!(self, Self::Error(Errno::EIO | Errno::ENOSPC | Errno::EDQUOT))
    }

    /// Words of which one must be said to the user.
    pub(crate) const fn words(self) -> &'static [&'static str] {
        match self {
            Self::Error(Errno::EIO) => &["input/output error", "i/o error"],
            Self::Error(Errno::ENOSPC) => &["no space", "full"],
            Self::Error(Errno::EDQUOT) => &["quota"],
            Self::Error(Errno::EINTR) => &["interrupted"],
            Self::Error(Errno::EMFILE) => &["too many open files", "ulimit"],
            _ => &[],
        }
    }
}

impl Fault {
    /// How a call goes wrong, if that is what it is about.
    pub(crate) const fn wrong(&self) -> Option<Wrong> {
        match self {
            Self::None | Self::Kill(_) => None,
            Self::Full(_) => Some(Wrong::Error(Errno::ENOSPC)),
            Self::Call { error, .. } => Some(*error),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("short"),
            Self::Killed => f.write_str("killed"),
            Self::Error(errno) => {
                let name = ERRORS.iter().find(|(known, _)| known == errno);
                f.write_str(name.map_or("?", |(_, name)| name))
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Kill(nth) => write!(f, "kill#{nth}"),
            Self::Full(nth) => write!(f, "full#{nth}"),
            Self::Call { call, area, nth, error, lasting } => {
                let mark = if *lasting == Lasting::ForGood { "!" } else { "" };
                write!(f, "{call}@{area}#{nth}={error}{mark}")
            }
        }
    }
}

impl FromStr for Fault {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some(nth) = text.strip_prefix("kill#") {
            return Ok(Self::Kill(nth.parse()?));
        }
        if let Some(nth) = text.strip_prefix("full#") {
            return Ok(Self::Full(nth.parse()?));
        }
        let shape = || format!("{text}: not of the form write@target#2=ENOSPC!");
        let (call, rest) = text.split_once('@').with_context(shape)?;
        let (area, rest) = rest.split_once('#').with_context(shape)?;
        let (nth, rest) = rest.split_once('=').with_context(shape)?;
        let (error, lasting) = match rest.strip_suffix('!') {
            Some(error) => (error, Lasting::ForGood),
            None => (rest, Lasting::Once),
        };
        let error = match ERRORS.iter().find(|(_, name)| *name == error) {
            Some((errno, _)) => Wrong::Error(*errno),
            None if error == "short" => Wrong::Short,
            None if error == "killed" => Wrong::Killed,
            None => bail!("{error}: no such error"),
        };
        let (call, area, nth) = (call.parse()?, area.parse()?, nth.parse()?);
        Ok(Self::Call { call, area, nth, error, lasting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_as_it_is_written() {
        for text in
            ["none", "kill#17", "full#3", "write@target#2=ENOSPC!", "set-attribute@state#1=short"]
        {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
        for text in ["", "write", "write@target", "writ@target#1=EIO", "write@target#x=EIO"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
