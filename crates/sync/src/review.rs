//! Which files of a copy that did not succeed are at the target all the same, and which have gone from the source.

use crate::each::each;
use crate::options::Options;
use crate::side::{Done, Kind, Side, Why};
use hikyaku_console::Scope;
use hikyaku_fs::Shown;

/// What became of the files of a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Review {
    /// All files that the source has are at the target; these have gone from the source.
    Vanished(Vec<String>),
    /// Others are missing, too.
    NotAll,
}

/// Looks at each file of a list, in which a zero byte follows each path, at both ends.
///
/// # Errors
///
/// An end is lost.
pub(crate) fn review(
    files: &[u8],
    (source, target): (&Side, &Side),
    options: &Options,
    scope: &Scope,
) -> Done<Review> {
    if !options.keeps_times {
        // A file that was there before and one that was copied look the same.
        return Ok(Review::NotAll);
    }
    let files: Vec<&[u8]> =
        files.split(|&byte| byte == 0).filter(|file| !file.is_empty()).collect();
    let failed = each(&files, scope, |file| {
        let source = source.look(file)?;
        let there = target.look(file).map_err(|why| match why.is_end() {
            true => why,
            false => Why::of_name("it was not copied"),
        })?;
        let is_copied = there.kind == Kind::File
            && (source.size, source.low_secs()) == (there.size, there.low_secs());
        if is_copied { Ok(()) } else { Err(Why::of_name("it was not copied")) }
    })?;
    match failed.iter().all(|(_, why)| why.is_absent()) {
        true => {
            let shown = |(file, _): &(&&[u8], Why)| Shown::new(file).to_string();
            Ok(Review::Vanished(failed.iter().map(shown).collect()))
        }
        false => Ok(Review::NotAll),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::testing::TestSide;
    use hikyaku_console::Interrupt;

    #[test]
    fn a_file_that_has_gone_is_told_from_one_that_was_not_copied() {
        let target = TestSide::new(&["a", "b", "kept"]);
        let options = Options { keeps_times: true, ..Options::default() };
        let scope = Interrupt::default().scope();
        let of = |source: &[&str], files: &str, options: &Options| {
            let source = TestSide::new(source);
            review(files.as_bytes(), (&source, &target), options, &scope).unwrap()
        };
        let vanished = Review::Vanished(vec!["gone".to_owned(), "kept".to_owned()]);
        assert_eq!(of(&["a", "b"], "a\0gone\0b\0kept\0", &options), vanished);
        assert_eq!(of(&["a", "new"], "a\0gone\0new\0", &options), Review::NotAll);
        assert_eq!(of(&["a"], "a\0gone\0", &Options::default()), Review::NotAll);
        let larger = TestSide::new(&["a"]);
        larger.add("a", 2);
        let found = review(b"a\0", (&larger, &target), &options, &scope).unwrap();
        assert_eq!(found, Review::NotAll);
    }
}
