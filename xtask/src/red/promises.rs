//! What is weakened of the promises of options, limits and admission: each holds on every way, by one function.

use super::Weakening;
use super::table::{Tests, weak};

const JOB: Tests = ("hikyaku-job", &["--lib"]);
const MOVER: Tests = ("hikyaku-mover", &["--lib"]);
const SPREAD: Tests = ("hikyaku-spread", &["--lib"]);
const FS: Tests = ("hikyaku-fs", &["--lib"]);
const MOUNT: Tests = ("hikyaku-mount", &["--lib"]);
const REACH: Tests = ("hikyaku-reach", &["--lib"]);
const SERVE: Tests = ("hikyaku-serve", &["--lib"]);
const PROXY: Tests = ("hikyaku-proxy", &["--lib"]);
const SYNC: Tests = ("hikyaku-sync", &["--lib"]);
const GET: Tests = ("hikyaku-web-get", &["--test", "get"]);
const NETRC: Tests = ("hikyaku-http", &["--lib"]);
const STORE_HTTP: Tests = ("hikyaku-store-http", &["--test", "http"]);

const CHOICE: &str = "crates/mover/src/choice.rs";
const DRESS: &str = "crates/mover/src/dress.rs";
const CHANGES: &str = "crates/mount/src/changes.rs";
const PACE: &str = "crates/reach/src/pace.rs";
const SESSIONS: &str = "crates/serve/src/sessions.rs";
const LATER_CHANGES: &str = "an_answer_from_before_a_change_of_its_path_is_not_used";
const DELETED: &str = "what_is_deleted_and_what_is_replaced_is_kept_where_the_user_wants_that";

pub(super) const WEAKENINGS: &[Weakening] = &[
    weak(
        "choice, files that are kept",
        "crates/job/src/action.rs",
        (
            "_ if existing == Existing::Kept => FileAction::Stay,",
            "Kind::Dir if existing == Existing::Kept => FileAction::Stay,",
        ),
        JOB,
        "a_file_replaces_files_and_links_unless_its_user_keeps_them",
    ),
    weak(
        "choice, newer files",
        "crates/transfer/src/rules.rs",
        ("KeptIfNewer => old >= new", "KeptIfNewer => old < new"),
        JOB,
        "a_file_replaces_files_and_links_unless_its_user_keeps_them",
    ),
    weak(
        "choice, patterns below directories",
        CHOICE,
        (
            "dirs_above(path).any(|dir| patterns.leaves_out(dir, true))\n            || patterns",
            "patterns",
        ),
        MOVER,
        "patterns_and_lists_choose_names_below_a_source",
    ),
    weak(
        "modes of servers, a file that is replaced",
        DRESS,
        (
            "(Self::Usual { .. } | Self::OfStore, Some(found)) => found.mode,",
            "(Self::Usual { umask }, Some(_)) => mode & !umask,\n(Self::OfStore, Some(found)) => found.mode,",
        ),
        MOVER,
        "a_file_that_is_replaced_keeps_its_bits_unless_those_of_the_source_are_kept",
    ),
    weak(
        "modes of servers, a directory that is there",
        DRESS,
        ("(Self::Usual { .. }, DirState::There)", "(Self::Usual { umask: 0 }, DirState::There)"),
        MOVER,
        "a_directory_gets_its_bits_when_it_is_filled_and_keeps_the_sticky_one",
    ),
    weak(
        "modes, the sticky bit of a directory",
        "crates/fs/src/dir/meta.rs",
        ("mode & (PERMISSIONS | STICKY_BIT)", "mode & PERMISSIONS"),
        FS,
        "a_directory_keeps_the_group_that_it_inherited",
    ),
    weak(
        "streams of servers, their order",
        "crates/mover/src/in_order.rs",
        ("Work::Waits if at == state.taken =>", "Work::Waits =>"),
        MOVER,
        "parts_that_come_early_wait_for_those_before_them",
    ),
    weak(
        "streams of servers, their window",
        "crates/spread/src/stock.rs",
        ("begun.free.remove(Run::new(end, all))", "begun.free.remove(Run::new(all, all))"),
        SPREAD,
        "nothing_out_of_reach_is_asked_for_and_everything_comes_once_it_is_in_reach",
    ),
    weak(
        "targets, a FIFO",
        "crates/fs/src/target.rs",
        (
            "Ok(Self::Stream(Device::Fifo(path.to_owned(), identity))),",
            "Spot::of_file(path, identity).map(Self::Name),",
        ),
        FS,
        "each_kind_of_target_is_told",
    ),
    weak(
        "targets, a device",
        "crates/fs/src/target.rs",
        (
            "Ok(Self::Stream(Device::Device(path.to_owned(), identity)))",
            "Spot::of_file(path, identity).map(Self::Name)",
        ),
        FS,
        "each_kind_of_target_is_told",
    ),
    weak(
        "journals, mode",
        "crates/fs/src/trust.rs",
        ("if mode & OTHERS_WRITE_BITS != 0 {", "if mode & OTHERS_WRITE_BITS > 0o777 {"),
        FS,
        "what_others_may_change_or_a_secret_that_they_may_read_is_not_believed",
    ),
    weak(
        "lists of keys, a device",
        "crates/fs/src/trust.rs",
        (
            "FileType::CharacterDevice if is_null_device(&stat) => Ok(()),",
            "FileType::CharacterDevice => Ok(()),",
        ),
        FS,
        "a_list_may_be_a_pipe_or_the_null_device_and_no_other_device",
    ),
    weak(
        "files without a size",
        "crates/fs/src/volume.rs",
        (
            "meta.kind == Kind::File && meta.size == 0 &&",
            "meta.kind == Kind::File && meta.size > 0 &&",
        ),
        FS,
        "files_of_the_kernel_have_no_size_and_empty_files_have",
    ),
    weak(
        "changes of a mount, a name",
        CHANGES,
        ("at.under_way == 0 && at.name <= sent;", "at.under_way == 0 || at.name <= sent;"),
        MOUNT,
        LATER_CHANGES,
    ),
    weak(
        "changes of a mount, a listing",
        CHANGES,
        (
            "self.at(dir.as_bytes()).entries = last;\n        }",
            "self.at(dir.as_bytes());\n        }",
        ),
        MOUNT,
        LATER_CHANGES,
    ),
    weak(
        "changes of a mount, under way",
        CHANGES,
        ("self.at(path.as_bytes()).under_way += 1;", "self.at(path.as_bytes()).under_way = 1;"),
        MOUNT,
        "while_a_change_is_under_way_no_answer_about_its_path_is_used",
    ),
    weak(
        "changes of a mount, forgotten",
        CHANGES,
        ("self.floor = self.floor.max(oldest);", ""),
        MOUNT,
        "what_is_forgotten_is_taken_for_changed",
    ),
    weak(
        "rate, received over TCP",
        PACE,
        ("self.received.reserve(Instant::now(), bytes)", "None.filter(|_: &Instant| bytes > 0)"),
        REACH,
        "connections_that_share_a_limit_keep_it_together_in_both_directions",
    ),
    weak(
        "rate, shared over TCP",
        PACE,
        (
            "self.sent.change(|limits| limits.shared = Some(sent.clone()));",
            "self.sent.change(|limits| limits.shared = Some(Arc::new(Pace::new(sent.rate()))));",
        ),
        REACH,
        "connections_that_share_a_limit_keep_it_together_in_both_directions",
    ),
    weak(
        "rate, of one connection over TCP",
        PACE,
        (
            "self.sent.change(|limits| limits.own = rate.map",
            "self.received.change(|limits| limits.own = rate.map",
        ),
        REACH,
        "the_limit_of_one_connection_holds_and_can_be_changed",
    ),
    weak(
        "admission, a key that is gone",
        SESSIONS,
        ("None => connection.close(NOT_AUTHORISED, &not_authorised(&key)),", "None => {}"),
        SERVE,
        "sessions_end_whose_key_is_gone_or_may_do_something_else",
    ),
    weak(
        "admission, a share of a key",
        SESSIONS,
        ("== guest.key), of_key) {", "== guest.key), of_key + 1) {"),
        SERVE,
        "one_key_leaves_room_for_the_others",
    ),
    weak(
        "admission, what the kernel cannot tell",
        "crates/proxy/src/near/users.rs",
        ("open.is_some_and(|socket|", "open.is_none_or(|socket|"),
        PROXY,
        "only_an_open_socket_of_this_user_or_of_root_is_admitted",
    ),
    weak(
        "admission, a closed socket",
        "crates/proxy/src/near/users.rs",
        ("flatten().filter(|socket| socket.inode != 0);", "flatten();"),
        PROXY,
        "a_program_that_has_closed_its_connection_is_refused",
    ),
    weak(
        "sync -b --delete",
        "crates/sync/src/walk/deletion.rs",
        ("Some(suffix) if meta.kind != Kind::Dir &&", "Some(suffix) if meta.kind == Kind::Dir &&"),
        SYNC,
        DELETED,
    ),
    weak(
        "sync -b, a name that is taken",
        "crates/sync/src/walk.rs",
        ("name.extend_from_slice(suffix);\n", "break;\n"),
        SYNC,
        DELETED,
    ),
    weak(
        "netrc, another host",
        "crates/http/src/netrc.rs",
        (
            "entry.machine.as_deref() == Some(host);",
            "entry.machine.as_deref().is_none_or(|machine| machine == host);",
        ),
        NETRC,
        "the_first_entry_for_a_host_counts",
    ),
    weak(
        "netrc, other readers",
        "crates/http/src/secrets.rs",
        ("if meta.mode() & 0o077 != 0 {", "if meta.mode() & 0o077 > 0o777 {"),
        GET,
        "logins_may_come_from_a_file_that_only_the_user_can_read",
    ),
    weak(
        "web servers, a part of another version",
        "crates/http/src/offer.rs",
        ("if is_same == Some(false) {", "if is_same == Some(false) && self.total.is_none() {"),
        STORE_HTTP,
        "two_versions_are_never_mixed",
    ),
    weak(
        "web servers, a file without a version",
        "crates/store-http/src/open.rs",
        (
            "None if self.known.proof == Proof::None && self.is_begun",
            "None if self.known.proof == Proof::Digest && self.is_begun",
        ),
        STORE_HTTP,
        "a_file_without_a_version_comes_by_one_answer",
    ),
    weak(
        "web servers, bytes behind an answer",
        "crates/http/src/client.rs",
        (
            "Err(Fault::Lie(_) | Fault::Invalid(_)) => {}",
            "Err(fault @ (Fault::Lie(_) | Fault::Invalid(_))) => return Err(fault),",
        ),
        STORE_HTTP,
        "bytes_behind_an_answer_are_not_used",
    ),
];
