//! Commands that fail. `$ROOT` is a directory on this host, on `far` and on the daemon `$SERVED`; `$CLOSED` is a daemon with
//! no key in its list, `$HTTP` and `$FTP` are servers. The host `stranger` refuses the user's key, `nowhere` has a name that
//! does not exist, and on `refusing` no program listens.

/// How a command fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Case {
    NoHost,
    Refused,
    NoFile,
    NoPermission,
    Usage,
}

impl Case {
    pub(super) const ALL: [Self; 5] =
        [Self::NoHost, Self::Refused, Self::NoFile, Self::NoPermission, Self::Usage];
}

/// The expected output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// `hikyaku: WHERE: cause`, and perhaps `try: `.
    Line,
    /// A mistake of the command line.
    Usage,
    /// A table or a report, with its reasons in it.
    Report,
}

/// A command that fails.
pub(super) struct Row {
    pub(super) case: Case,
    /// The words after `hikyaku`.
    pub(super) line: &'static str,
    pub(super) code: i32,
    /// The place that the message begins with.
    pub(super) place: &'static str,
    pub(super) shape: Shape,
}

impl Row {
    pub(super) fn verb(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }
}

const fn row(case: Case, line: &'static str, code: i32, place: &'static str) -> Row {
    Row { case, line, code, place, shape: Shape::Line }
}

const fn usage(line: &'static str) -> Row {
    Row { case: Case::Usage, line, code: 1, place: "", shape: Shape::Usage }
}

const fn report(case: Case, line: &'static str, code: i32) -> Row {
    Row { case, line, code, place: "", shape: Shape::Report }
}

use Case::{NoFile, NoHost, NoPermission, Refused};

/// Verbs that cannot fail in a way: they contact no host, read no file that the user names, or take no words.
pub(super) const EXEMPT: &[(&str, &[Case])] = &[
    ("completions", &[NoHost, Refused, NoFile, NoPermission]),
    ("config", &[NoHost, Refused, NoFile, NoPermission]),
    ("lab", &[NoHost, Refused]),
    ("man", &[NoHost, Refused, NoFile]),
    ("report", &[NoHost, Refused]),
    ("umount", &[NoHost, Refused, NoPermission]),
    // It reads no file that the user names.
    ("status", &[NoFile]),
];

/// The commands.
pub(super) const ROWS: &[Row] = &[
    row(NoHost, "cp nowhere:x y", 5, "nowhere"),
    row(NoHost, "cp f nowhere:x", 5, "nowhere"),
    row(NoHost, "cp hikyaku://nosuch.invalid/x y", 6, "nosuch.invalid:5209"),
    row(NoHost, "cp f hikyaku://nosuch.invalid/x", 6, "nosuch.invalid:5209"),
    row(NoHost, "cp --via tcp hikyaku://nosuch.invalid/x y", 6, "nosuch.invalid:5209"),
    row(Refused, "cp refusing:x y", 5, "refusing"),
    row(Refused, "cp hikyaku://127.0.0.1:1/x y", 5, "127.0.0.1:1"),
    row(Refused, "cp f hikyaku://127.0.0.1:1/x", 5, "127.0.0.1:1"),
    row(Refused, "cp --via udp hikyaku://127.0.0.1:1/x y", 5, "127.0.0.1:1"),
    row(Refused, "cp --via tcp hikyaku://127.0.0.1:1/x y", 5, "127.0.0.1:1"),
    row(NoHost, "cp --start-servers hikyaku://nowhere/x y", 5, "nowhere"),
    row(Refused, "cp --start-servers hikyaku://refusing/x y", 5, "refusing"),
    row(NoPermission, "cp --start-servers hikyaku://stranger/x y", 5, "stranger"),
    row(NoFile, "cp --start-servers --remote-path /no/hikyaku hikyaku://far/x y", 6, "far"),
    row(NoFile, "cp --via native --remote-path /no/hikyaku far:x y", 6, "far"),
    row(NoFile, "cp --files-from nosuch dir y", 6, "nosuch"),
    row(NoFile, "cp --log-dir locked/d f y", 6, "locked/d"),
    row(NoPermission, "cp --manifest shut/m f y", 6, "shut/m"),
    row(NoFile, "cp nosuch y", 6, "nosuch"),
    row(NoFile, "cp f nosuch/z/", 6, "$WORK/nosuch"),
    row(NoFile, "cp --remote-path $PROGRAM far:$ROOT/nosuch y", 6, "far:$ROOT/nosuch"),
    row(NoFile, "cp --remote-path $PROGRAM f far:$ROOT/no/such/", 6, "far:$ROOT/no"),
    row(NoFile, "cp -q --via sftp far:$ROOT/nosuch y", 6, "far:$ROOT/nosuch"),
    row(NoFile, "cp -q --via sftp f far:$ROOT/no/such/", 6, "far:$ROOT/no/such/"),
    row(NoFile, "cp hikyaku://$SERVED/nosuch y", 6, "hikyaku://$SERVED/nosuch"),
    row(NoPermission, "cp locked y", 6, "locked"),
    row(NoPermission, "cp f shut/g", 6, "$WORK/shut/g"),
    row(NoPermission, "cp stranger:x y", 5, "stranger"),
    row(NoPermission, "cp hikyaku://$CLOSED/x y", 6, "$CLOSED"),
    row(NoPermission, "cp f hikyaku://$SERVED/x", 6, "$SERVED"),
    usage("cp f"),
    row(NoHost, "cp http://nosuch.invalid/x y", 6, "http://nosuch.invalid/x"),
    row(NoHost, "cp f ftp://nosuch.invalid/x", 6, "ftp://nosuch.invalid/x"),
    row(Refused, "cp ftp://127.0.0.1:1/x y", 5, "ftp://127.0.0.1:1/x"),
    row(Refused, "cp https://127.0.0.1:1/x y", 5, "https://127.0.0.1:1/x"),
    row(NoFile, "cp http://$HTTP/nosuch y", 6, "http://$HTTP/nosuch"),
    usage("cp f http://nosuch.invalid/x"),
    usage("cp ftp://127.0.0.1:0/x y"),
    usage("cp f "),
    usage("cp -P 0 f far:x"),
    usage("cp hikyaku://127.0.0.1:0/x y"),
    row(NoHost, "sftp nowhere", 5, "nowhere"),
    row(Refused, "sftp refusing", 5, "refusing"),
    row(NoFile, "sftp -b nosuch far", 6, "nosuch"),
    row(NoFile, "sftp --via native --remote-path /no/hikyaku far", 6, "far"),
    row(NoPermission, "sftp -b locked far", 6, "locked"),
    row(NoPermission, "sftp stranger", 5, "stranger"),
    usage("sftp hikyaku://$SERVED/"),
    usage("sftp -P 0 far"),
    usage("sftp -R 0 far"),
    usage("sftp -B 0 far"),
    row(NoHost, "sync -a dir nowhere:x", 5, "nowhere"),
    row(Refused, "sync -a refusing:x y", 5, "refusing"),
    row(NoFile, "sync -a nosuch y", 6, "nosuch"),
    row(NoFile, "sync -a --remote-path $PROGRAM far:$ROOT/nosuch y", 6, "far:$ROOT/nosuch"),
    row(NoFile, "sync -a --files-from nosuch dir y", 6, "nosuch"),
    row(NoFile, "sync -a --exclude-from nosuch dir y", 6, "nosuch"),
    row(NoPermission, "sync -a stranger:x y", 5, "stranger"),
    usage("sync -a http://127.0.0.1:1/x y"),
    usage("sync -a f g h"),
    row(NoHost, "ls hikyaku://nosuch.invalid/x", 6, "nosuch.invalid:5209"),
    row(Refused, "ls -l hikyaku://127.0.0.1:1/x", 5, "127.0.0.1:1"),
    row(NoFile, "ls nosuch", 6, "nosuch"),
    row(NoFile, "ls f/", 6, "f/"),
    row(NoFile, "ls -r --json hikyaku://$SERVED/nosuch", 6, "hikyaku://$SERVED/nosuch"),
    row(NoPermission, "ls -r hikyaku://$CLOSED/", 6, "$CLOSED"),
    usage("ls"),
    row(NoHost, "ls nowhere:x", 5, "nowhere"),
    row(NoHost, "ls http://nosuch.invalid/x", 6, "http://nosuch.invalid/x"),
    row(NoHost, "ls ftp://nosuch.invalid/x", 6, "ftp://nosuch.invalid/x"),
    row(NoFile, "ls --remote-path $PROGRAM far:$ROOT/nosuch", 6, "far:$ROOT/nosuch"),
    usage("ls http://127.0.0.1:0/x"),
    row(NoHost, "get http://nosuch.invalid/x", 6, "http://nosuch.invalid/x"),
    row(Refused, "get http://127.0.0.1:1/x", 5, "http://127.0.0.1:1/x"),
    row(NoFile, "get http://$HTTP/nosuch", 6, "http://$HTTP/nosuch"),
    row(NoFile, "get --ca nosuch https://127.0.0.1:1/x", 6, "nosuch"),
    row(NoPermission, "get --ca locked https://127.0.0.1:1/x", 6, "locked"),
    row(NoPermission, "get http://$HTTP/locked", 6, "http://$HTTP/locked"),
    row(NoHost, "get ftp://nosuch.invalid/x", 6, "ftp://nosuch.invalid/x"),
    usage("get http://127.0.0.1:0/x"),
    usage("get -n 0 http://127.0.0.1:1/x"),
    row(NoHost, "guc ftp://nosuch.invalid/x file:///tmp/x", 6, "nosuch.invalid:21"),
    row(Refused, "guc ftp://127.0.0.1:1/x file:///tmp/x", 5, "127.0.0.1:1"),
    row(NoFile, "guc ftp://anna:a@$FTP/x file:///tmp/x", 6, "ftp://anna@$FTP/x"),
    row(NoFile, "guc file:///no/such ftp://anna:a@$FTP/x", 6, "/no/such"),
    row(NoPermission, "guc ftp://$FTP/x file:///tmp/x", 6, "$FTP"),
    row(NoPermission, "guc file://$WORK/locked ftp://anna:a@$FTP/x", 6, "$WORK/locked"),
    usage("guc f g"),
    usage("guc ftp://127.0.0.1:0/x file:///tmp/x"),
    row(NoHost, "mount hikyaku://nosuch.invalid/ dir", 6, "nosuch.invalid:5209"),
    row(Refused, "mount hikyaku://127.0.0.1:1/ dir", 5, "127.0.0.1:1"),
    row(NoFile, "mount hikyaku://$SERVED/ nosuch", 6, "nosuch"),
    row(NoFile, "mount hikyaku://$SERVED/nosuch dir", 6, "hikyaku://$SERVED/nosuch"),
    row(NoFile, "mount hikyaku://$SERVED/f dir", 6, "hikyaku://$SERVED/f"),
    row(NoPermission, "mount hikyaku://$CLOSED/ dir", 6, "$CLOSED"),
    usage("mount far:x dir"),
    usage("mount hikyaku://127.0.0.1:0/ dir"),
    row(NoFile, "umount dir", 6, "dir"),
    row(NoFile, "umount nosuch", 6, "nosuch"),
    usage("umount"),
    row(NoHost, "view hikyaku://nosuch.invalid/x.png", 6, "nosuch.invalid:5209"),
    row(Refused, "view hikyaku://127.0.0.1:1/x.png", 5, "127.0.0.1:1"),
    row(NoFile, "view nosuch.png", 6, "nosuch.png"),
    row(NoFile, "view nosuch/*.png", 6, "nosuch"),
    row(NoFile, "view dir/*.png", 6, "dir/*.png"),
    row(NoFile, "view hikyaku://$SERVED/nosuch.png", 6, "hikyaku://$SERVED/nosuch.png"),
    row(NoPermission, "view hikyaku://$CLOSED/x.png", 6, "$CLOSED"),
    row(NoPermission, "view locked", 6, "locked"),
    row(NoPermission, "view hikyaku://$SERVED/locked", 6, "locked"),
    usage("view"),
    usage("view f/**/g"),
    usage("view hikyaku://127.0.0.1:0/x.png"),
    usage("view --ahead 0 x.png"),
    row(NoHost, "perf nosuch.invalid", 6, "nosuch.invalid"),
    row(NoHost, "perf user@nosuch.invalid", 5, "nosuch.invalid"),
    row(Refused, "perf -p 1 127.0.0.1", 5, "127.0.0.1"),
    row(Refused, "perf user@refusing", 5, "refusing"),
    row(NoFile, "perf --remote-path /no/hikyaku ssh://far", 6, "far"),
    row(NoFile, "perf --logfile nosuch/l 127.0.0.1", 6, "nosuch/l"),
    row(NoPermission, "perf --logfile locked 127.0.0.1", 6, "locked"),
    row(NoPermission, "perf user@stranger", 5, "stranger"),
    report(NoHost, "perf --mesh nowhere,nosuch.invalid", 5),
    usage("perf -t nonsense 127.0.0.1"),
    usage("perf -p 0 127.0.0.1"),
    usage("perf -P 0 127.0.0.1"),
    usage("perf 127.0.0.1:0"),
    report(NoHost, "doctor nowhere", 5),
    report(Refused, "doctor refusing", 5),
    report(NoPermission, "doctor stranger", 5),
    report(NoFile, "doctor --dir nosuch", 6),
    report(NoFile, "doctor --remote-path /no/hikyaku far", 6),
    usage("doctor hikyaku://127.0.0.1:1"),
    usage("doctor ssh://far:0"),
    row(NoHost, "proxy -D 0 nowhere", 5, "nowhere"),
    row(NoHost, "proxy -D 0 hikyaku://nosuch.invalid", 6, "nosuch.invalid:5209"),
    row(Refused, "proxy -D 0 refusing", 5, "refusing"),
    row(Refused, "proxy -D 0 hikyaku://127.0.0.1:1", 5, "127.0.0.1:1"),
    row(Refused, "proxy -D $SERVED hikyaku://$SERVED", 5, "$SERVED"),
    row(NoFile, "proxy -D 0 --remote-path /no/hikyaku far", 6, "far"),
    report(NoFile, "proxy off", 6),
    row(NoPermission, "proxy -D 0 stranger", 5, "stranger"),
    row(NoPermission, "proxy -D 0 hikyaku://$CLOSED", 6, "$CLOSED"),
    usage("proxy -D nosuch far"),
    usage("proxy -D 0 hikyaku://127.0.0.1:0"),
    usage("proxy -L 0:nosuch.invalid:0 far"),
    row(
        NoHost,
        "web --program /bin/true hikyaku://nosuch.invalid http://$HTTP/",
        6,
        "nosuch.invalid:5209",
    ),
    row(Refused, "web --program /bin/true hikyaku://127.0.0.1:1 http://$HTTP/", 5, "127.0.0.1:1"),
    row(NoHost, "web --program /bin/true nowhere http://$HTTP/", 5, "nowhere"),
    row(Refused, "web --program /bin/true refusing http://$HTTP/", 5, "refusing"),
    row(NoFile, "web --program /bin/true --remote-path /no/hikyaku far http://$HTTP/", 6, "far"),
    row(NoPermission, "web --program /bin/true hikyaku://$CLOSED http://$HTTP/", 6, "$CLOSED"),
    usage("web far"),
    usage("web hikyaku://127.0.0.1:0 http://$HTTP/"),
    usage("web --site nosuch.invalid --port 0 far"),
    report(NoHost, "status hikyaku://nosuch.invalid", 6),
    report(Refused, "status hikyaku://127.0.0.1:1", 5),
    report(NoPermission, "status hikyaku://$CLOSED", 6),
    usage("status node1"),
    usage("status hikyaku://127.0.0.1:0"),
    row(NoHost, "keys fetch nowhere", 5, "nowhere"),
    row(Refused, "keys fetch refusing", 5, "refusing"),
    row(NoPermission, "keys fetch stranger", 5, "stranger"),
    row(NoFile, "keys fetch --remote-path /no/hikyaku far", 6, "far"),
    row(NoHost, "keys install nowhere", 5, "nowhere"),
    row(Refused, "keys install refusing", 5, "refusing"),
    row(NoPermission, "keys install stranger", 5, "stranger"),
    usage("keys"),
    usage("keys fetch far:0"),
    usage("keys fetch -P 0 far"),
    row(NoHost, "far list nowhere", 5, "nowhere"),
    row(Refused, "far list refusing", 5, "refusing"),
    row(NoPermission, "far list stranger", 5, "stranger"),
    row(NoHost, "far install nowhere", 5, "nowhere"),
    row(Refused, "far install refusing", 5, "refusing"),
    row(NoPermission, "far install stranger", 5, "stranger"),
    row(NoHost, "far remove nowhere", 5, "nowhere"),
    row(NoFile, "far install --far-binary nosuch far", 6, "nosuch"),
    usage("far list"),
    usage("far list ssh://far:0"),
    usage("far list -P 0 far"),
    row(NoFile, "report nosuch", 6, "nosuch"),
    row(NoPermission, "report locked", 6, "locked"),
    usage("report"),
    row(NoFile, "serve --root nosuch", 6, "nosuch"),
    row(NoFile, "serve --root f", 6, "f"),
    row(NoPermission, "serve --root dir --authorized-keys locked", 6, "locked"),
    row(NoPermission, "serve --root dir --key locked", 6, "locked"),
    row(Refused, "serve --root dir --listen $SERVED", 5, "$SERVED"),
    row(NoHost, "serve --root dir --listen 203.0.113.1:5209", 6, "203.0.113.1:5209"),
    usage("serve"),
    usage("serve --root dir --max-clients 0"),
    usage("serve --root dir --listen 127.0.0.1:99999"),
    row(NoFile, "lab status nosuch", 6, "nosuch"),
    row(NoFile, "lab exec nosuch client -- true", 6, "nosuch"),
    row(NoFile, "lab set nosuch --rtt 1ms", 6, "nosuch"),
    row(NoFile, "lab down nosuch", 6, "nosuch"),
    report(NoPermission, "lab run -- true", 6),
    usage("lab run --loss 1 -- true"),
    row(NoPermission, "man --all shut/man", 6, "shut/man"),
    usage("man --nosuch"),
    usage("completions klingon"),
    usage("config show a b"),
];
