//! Precautions of a copy for files that are weakened. A name begins with the subject that the weakened code protects.

use super::Weakening;
use super::table::{Tests, weak};

const FS: Tests = ("hikyaku-fs", &["--lib"]);
const JOB: Tests = ("hikyaku-job", &["--lib"]);
const PAIR: Tests = ("hikyaku-pair", &["--lib"]);
const TRANSFER: Tests = ("hikyaku-transfer", &["--lib"]);
const AGAIN: Tests = ("hikyaku-cli", &["--test", "e2e"]);

const BEFORE: &str = "crates/pair/src/receive/before.rs";
const ACTION: &str = "crates/job/src/action.rs";
const META: &str = "crates/fs/src/dir/meta.rs";
const DRAFT: &str = "crates/fs/src/draft.rs";

pub(super) const WEAKENINGS: &[Weakening] = &[
    weak(
        "failed syncs, claimed segments",
        BEFORE,
        ("still_right(&draft, &claimed).ok()?.runs()", "claimed.runs()"),
        AGAIN,
        "bytes_that_the_kernel_has_dropped_are_sent_again",
    ),
    weak(
        "failed syncs, void files",
        "crates/transfer/src/journal.rs",
        ("self.files.insert(path, void);", "drop((path, void));"),
        TRANSFER,
        "after_a_failed_sync_nothing_of_the_file_counts",
    ),
    weak(
        "existing files, what is kept",
        ACTION,
        (
            "_ if existing == Existing::Kept => LinkAction::Stay,",
            "Kind::File if existing == Existing::Kept => LinkAction::Stay,",
        ),
        JOB,
        "a_link_replaces_files_and_other_links_unless_its_user_keeps_them",
    ),
    weak(
        "names that are taken, a link",
        "crates/fs/src/dir.rs",
        (
            "        let partial = token.partial(name)?;\n        self.make_link",
            "        let partial = token.partial(name)?;\n        let _ = self.remove_file(name);\n        self.make_link",
        ),
        FS,
        "a_link_that_cannot_be_made_costs_nothing",
    ),
    weak(
        "names that are taken, a device",
        ACTION,
        (
            "Kind::Special => FileAction::Refuse(InTheWay::Special),",
            "Kind::Special => FileAction::Write,",
        ),
        JOB,
        "a_file_replaces_files_and_links_unless_its_user_keeps_them",
    ),
    weak(
        "a device under a draft's name",
        DRAFT,
        (
            "Some(found) if found.kind == crate::Kind::Special => {",
            "Some(found) if found.kind == crate::Kind::Special && found.size > 1 << 60 => {",
        ),
        FS,
        "a_draft_never_replaces_what_is_no_regular_file",
    ),
    weak(
        "another user's unfinished file",
        DRAFT,
        ("trust_as_new(&opened, &dir, name)?;", "let _ = trust_as_new(&opened, &dir, name);"),
        FS,
        "an_unfinished_file_of_another_user_is_not_taken_up",
    ),
    weak(
        "writers, one writer",
        "crates/fs/src/lock.rs",
        (
            "Err(Errno::WOULDBLOCK) => {",
            "Err(Errno::WOULDBLOCK) if name.as_bytes().is_empty() => {",
        ),
        FS,
        "a_file_has_one_writer_in_place",
    ),
    weak(
        "changes, the change time",
        META,
        ("changed as u64, more_nanos.into()];", "0 * changed as u64, 0 * u64::from(more_nanos)];"),
        AGAIN,
        "a_source_that_changed_and_has_its_old_time_is_another_file",
    ),
    weak(
        "changes, a finished file",
        BEFORE,
        ("&& Version::of(&meta.version()) == done.made", "&& meta.size == done.size"),
        AGAIN,
        "a_finished_file_that_somebody_changed_is_copied_again",
    ),
    weak(
        "streams, a descriptor",
        "crates/fs/src/target.rs",
        (
            "if let Some(number) = descriptor_number(path) {",
            "if let Some(number) = descriptor_number(path).filter(|number| *number > 99) {",
        ),
        AGAIN,
        "an_open_descriptor_is_written_into",
    ),
    weak(
        "budgets, hashes ahead",
        "crates/pair/src/incoming.rs",
        ("if state.expected.len() > MOST_AHEAD {", "if state.expected.len() > 9 * MOST_AHEAD {"),
        PAIR,
        "hashes_of_what_is_not_sent_are_not_kept_for_ever",
    ),
    weak(
        "temporary files, leftovers",
        "crates/pair/src/receive/leftovers.rs",
        ("if token == self.disk.token {", "if token == self.disk.token && dir.sync().is_err() {"),
        AGAIN,
        "nothing_is_left_over_after_a_good_copy",
    ),
    weak(
        "temporary files, dropped drafts",
        DRAFT,
        ("if !self.is_kept.load(Ordering::Acquire) {", "if false {"),
        FS,
        "it_has_its_name_or_is_gone",
    ),
    weak(
        "modes, set-group-id",
        META,
        ("(PERMISSIONS | STICKY_BIT) | inherited", "(PERMISSIONS | STICKY_BIT) | inherited & 0"),
        FS,
        "a_directory_keeps_the_group_that_it_inherited",
    ),
    weak(
        "targets, a slash",
        "crates/pair/src/receive/place.rs",
        ("if self.landing.must_be_dir() && !is_deep {", "if false && !is_deep {"),
        AGAIN,
        "a_slash_at_the_end_means_a_directory",
    ),
];
