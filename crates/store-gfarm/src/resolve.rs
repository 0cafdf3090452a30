//! Where a path leads that the user has named: gfmd follows no symbolic links.

use crate::convert;
use crate::gfarm::{Gfarm, Trouble, one};
use hikyaku_store::{End, ErrorKind, Kind, Last, Root, Step, StorePath, lead};

/// The path without links in it. A link without a target is an error, as with every source that is named.
pub(crate) fn resolve(gfarm: &Gfarm, path: &StorePath) -> Result<StorePath, Trouble> {
    if has_no_link(gfarm, path)? {
        return Ok(path.clone());
    }
    let led = lead(path, (Root::OfAll, Last::Followed), |at| -> Result<Step, Trouble> {
        let at = at.as_bytes();
        let stat = match one(gfarm.ask(|session| session.look(&[at]))?.1) {
            Err(Trouble::Refused(ErrorKind::NotFound)) => return Ok(Step::Nothing),
            stat => stat?,
        };
        if convert::kind(stat.kind) != Kind::Link {
            return Ok(Step::Other);
        }
        Ok(Step::Link(one(gfarm.ask(|session| session.read_links(&[at]))?.1)?))
    })?;
    match led.end {
        End::There => Ok(led.path),
        End::Nothing | End::Dangling => Err(Trouble::Refused(ErrorKind::NotFound)),
        End::Away => Err(Trouble::Refused(ErrorKind::Link)),
    }
}

/// Whether nothing on the way is a link, which is the usual case and costs one question.
fn has_no_link(gfarm: &Gfarm, path: &StorePath) -> Result<bool, Trouble> {
    let ends = path.as_bytes().iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut steps: Vec<&[u8]> = ends.map(|(end, _)| &path.as_bytes()[..end]).collect();
    steps.push(path.as_bytes());
    let looked = gfarm.ask(|session| session.look(&steps))?.1;
    // A missing entry may be behind an existing link.
    let is_plain = |stat: &Result<hikyaku_gfarm::Stat, _>| {
        stat.as_ref().is_ok_and(|stat| convert::kind(stat.kind) != Kind::Link)
    };
    Ok(looked.iter().all(is_plain))
}

/// A root that was named by a path with links: what it is called by the user, and where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Led {
    shown: Vec<u8>,
    real: Vec<u8>,
}

impl Led {
    /// `None` if both are equal.
    pub(crate) fn new(shown: &StorePath, real: &StorePath) -> Option<Self> {
        let (shown, real) = (shown.as_bytes().to_vec(), real.as_bytes().to_vec());
        (shown != real).then_some(Self { shown, real })
    }

    /// The user's name of a path at or below the root.
    pub(crate) fn shown(&self, path: &[u8]) -> Vec<u8> {
        replaced(path, &self.real, &self.shown)
    }

    /// The path at gfmd of what the user calls so.
    pub(crate) fn real(&self, path: &[u8]) -> Vec<u8> {
        replaced(path, &self.shown, &self.real)
    }
}

/// The path with `to` in the place of `from` at its begin.
fn replaced(path: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let below = path.strip_prefix(from).unwrap_or(path);
    let below = below.strip_prefix(b"/").unwrap_or(below);
    match (to.is_empty(), below.is_empty()) {
        (true, _) => below.to_vec(),
        (false, true) => to.to_vec(),
        (false, false) => [to, b"/", below].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_a_link_are_called_as_the_user_does() {
        let led = |shown: &str, real: &str| {
            let path = |text: &str| StorePath::new(text.as_bytes()).unwrap();
            Led::new(&path(shown), &path(real)).unwrap()
        };
        for (shown, real, path, called) in [
            ("l", "d/f", "d/f", "l"),
            ("l", "d", "d/a/b", "l/a/b"),
            ("x/l", "", "a", "x/l/a"),
            ("x/l", "", "", "x/l"),
        ] {
            let led = led(shown, real);
            assert_eq!(led.shown(path.as_bytes()), called.as_bytes());
            assert_eq!(led.real(called.as_bytes()), path.as_bytes());
        }
        assert_eq!(Led::new(&StorePath::ROOT, &StorePath::ROOT), None);
    }
}
