//! The files that a stopped command has kept. The sentence promises how the next run begins, so every command that moves
//! files returns one of these, and tests compare the next run with it.

use anyhow::Error;

/// The user stopped the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Kept {
    /// All bytes: also an unfinished file is continued.
    #[error("stopped; the same command continues from here")]
    Everything,
    /// Complete files, which are not copied again.
    #[error("stopped; {}, the same command copies the others", complete(*files, *of))]
    WholeFiles {
        /// Complete files that this end knows of. A server may have more that it has not reported.
        files: u64,
        /// All files, if they are counted.
        of: Option<u64>,
    },
    /// Complete files. The target exists now, so that it would receive the directory whose new name it was.
    #[error(
        "stopped; complete files are kept; remove the target before the same command, which would copy into it"
    )]
    NewTree,
    /// No file was complete, and unfinished files are removed.
    #[error("stopped; nothing was kept")]
    Nothing,
    /// Complete files, of which no record is kept.
    #[error("stopped; the same command copies complete files again")]
    Unrecorded,
    /// Bytes under the final name of a file, in a session of SFTP.
    #[error(
        "stopped; the unfinished file has its final name, and the same transfer with -a continues it"
    )]
    InPlace,
    /// A pipe or a device was read or written, which works once.
    #[error("stopped; the bytes that went through the pipe cannot be copied again")]
    Spent,
}

impl Kept {
    /// The value of a command that removes unfinished files and knows of this number of complete ones.
    pub const fn whole_files(files: u64, of: Option<u64>) -> Self {
        if files == 0 { Self::Nothing } else { Self::WholeFiles { files, of } }
    }

    /// The value in the error of a stopped command.
    pub fn of(error: &Error) -> Option<Self> {
        error.chain().find_map(|link| link.downcast_ref()).copied()
    }
}

fn complete(files: u64, of: Option<u64>) -> String {
    let verb = if files == 1 { "is" } else { "are" };
    match (files, of) {
        (0, _) => "complete files are kept".to_owned(),
        (files, Some(of)) => format!("{files} of {of} files {verb} complete"),
        (1, None) => "1 file is complete".to_owned(),
        (files, None) => format!("{files} files are complete"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_has_the_number_of_files_as_far_as_it_is_known() {
        for (kept, wanted) in [
            (Kept::whole_files(0, Some(42)), "stopped; nothing was kept"),
            (
                Kept::whole_files(17, Some(42)),
                "stopped; 17 of 42 files are complete, the same command copies the others",
            ),
            (
                Kept::whole_files(1, None),
                "stopped; 1 file is complete, the same command copies the others",
            ),
            (
                Kept::WholeFiles { files: 0, of: None },
                "stopped; complete files are kept, the same command copies the others",
            ),
        ] {
            assert_eq!(kept.to_string(), wanted);
        }
        let error = Error::from(Kept::Nothing).context("run7/f1");
        assert_eq!(Kept::of(&error), Some(Kept::Nothing));
    }
}
