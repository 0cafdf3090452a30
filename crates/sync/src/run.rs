//! From arguments to trees that are alike.

use crate::apply::Applying;
use crate::args::{Hosts, SyncArgs};
use crate::contents::{Copied, Copying, What};
use crate::ends::{
    End, Hosts as EndHosts, Making, Meaning, Reaching, Root, SourceKind, Target as TargetRoot,
    check_ends, source_root, target_root,
};
use crate::filter::{BadRule, Rules};
use crate::item::Way;
use crate::names::Names;
use crate::options::{Excluded, Existing, OddTimes, Options, Sources, Window};
use crate::permit::{Permit, permit};
use crate::plan::{Plan, SetDir, join};
use crate::print::Printer;
use crate::review::{Review, review};
use crate::side::{Item, Kind, Side, Why};
use crate::table::TABLE;
use crate::walk::{NoPlan, Skipped, Target, Told, Walk};
use anyhow::{Error, Result};
use hikyaku_console::{
    Audience, Counts, ExitCode, Interrupt, Tone, Way as Carried, causes, misuse, print_end,
    printed, say, unwritten, with_remedy,
};
use hikyaku_copy::{By, CopyPlan, OpenSftp};
use hikyaku_fs::Shown;
use hikyaku_reach::bootstrap::Asking;
use hikyaku_reach::{SharedLogin, TIMES_ALONE, WayPlan, settings};
use hikyaku_shell::Link;
use hikyaku_stores::Location;
use hikyaku_units::DataSize;
use std::io::{self, ErrorKind};
use std::time::Instant;

/// Makes the target like the source. `memory` is what this process may take. Returns rsync's exit code where rsync has one.
///
/// # Errors
///
/// An end cannot be reached, or is lost; the source is empty and everything would be deleted.
pub fn run(args: &SyncArgs, memory: DataSize, interrupt: &Interrupt) -> Result<ExitCode> {
    let (begin, mut counts) = (Instant::now(), Counts::default());
    let done = make_alike(args, memory, interrupt, &mut counts);
    let code = match &done {
        Ok(code) => *code,
        Err(error) => ExitCode::of(error, &[hikyaku_copy::exit_code]),
    };
    let (error, counts) = (done.as_ref().err().map(causes), (&counts, begin.elapsed()));
    printed(print_end(args.audience(), counts, interrupt.exit(code), error.as_deref()))?;
    done
}

/// Runs the sync of these arguments, and counts what there is to copy, and what is copied.
fn make_alike(
    args: &SyncArgs,
    memory: DataSize,
    interrupt: &Interrupt,
    counts: &mut Counts,
) -> Result<ExitCode> {
    let options = args.options();
    let rules = args.rules().map_err(bad_rule)?;
    let rules = with_backups(rules, &options)?;
    check(&options)?;
    let [source, target] = locations(args)?;
    let mut copy = CopyPlan::new(vec![source.clone()], target.clone());
    copy.transport.by = args.by();
    let ways = hikyaku_copy::ways(&copy)?;
    let notes = TABLE.check(&args.given, &ways)?;
    let far = [&source, &target].into_iter().filter(|at| matches!(at, Location::Remote(_))).count();
    let hosts = EndHosts::of([&source, &target]);
    check_far((far, hosts), &options)?;
    check_daemons([&source, &target], args.by(), &options)?;
    let list = args.names()?;
    let way = args.way(if far > 0 { Hosts::Some } else { Hosts::None })?;
    let login = shared_login(&way, [&source, &target]);
    let ssh = login.as_ref().map_or_else(|| way.ssh.clone(), |login| login.of(&way.ssh));
    let way = &WayPlan { ssh, ..way };
    let (endpoint, scope) = (args.endpoint(), interrupt.scope());
    let note = |text: &String| say(Tone::Note, text);
    notes.iter().for_each(note);
    let by = args.by();
    let reaching = Reaching { way, by, hosts, endpoint: endpoint.clone(), memory, scope };
    let from_end = &End::open(source, &reaching)?;
    let to_end = &End::open(target, &reaching)?;
    let ends = [from_end, to_end];
    check_window(ends, &options)?;
    if is_by_sftp(ends) {
        let later = TABLE.check(&args.given, &[Carried::Sftp])?;
        later.iter().filter(|note| !notes.contains(*note)).for_each(note);
    }
    let meaning = if list.is_some() { Meaning::Root } else { Meaning::Itself };
    let source = source_root(from_end, meaning)?;
    let list = list.or_else(|| source.only.clone().map(Names::one));
    let mut out = Printer::new(args);
    if source.kind == SourceKind::Directory && !options.is_recursive {
        let name = source.only.as_deref();
        if name.is_none_or(|name| rules.copies(name, true)) {
            let skipped = Told::Skipped(Skipped::Directory, name.unwrap_or(b"."));
            out.tell(&skipped).map_err(unwritten)?;
        }
        return out.flush().map(|()| ExitCode::Success);
    }
    let from_side = source.place.side()?;
    let only = source.only.as_deref();
    let is_sole = || match (list.as_ref(), only) {
        _ if source.kind != SourceKind::Directory => false,
        (Some(list), _) if list.source().is_none() => false,
        (_, only) => is_sole(&from_side, only, &rules),
    };
    let making = match (options.is_rehearsal, options.existing) {
        (true, _) => Making::Rehearsed,
        (false, Existing::OnlyThese) => Making::IfMany,
        (false, _) => Making::Made,
    };
    let to = target_root(to_end, (&source, is_sole), making)?;
    let from = source.place;
    let to_side = target_side(&to, list.as_ref())?;
    let (source, target) = (&from_side, &to_side);
    if options.sources == Sources::Removed && source.is_same(target) {
        return Err(usage("SRC and DST are one directory: its files would be removed"));
    }
    let options = between(options, (source, target), ends);
    let walk = Walk {
        source,
        target,
        rules: &rules,
        options: &options,
        way: if to_end.is_here() { Way::Received } else { Way::Sent },
        names: list.as_ref(),
        plan_max: memory.bytes() / 2,
    };
    let plan = walk.plan(planned(to.root), &mut |told| out.tell(&told)).map_err(no_plan)?;
    out.flush()?;
    let new_name = to.new_name.as_deref();
    let (way, by, server) = carried((way, by), ends, far);
    let way = &way;
    let (total_files, total_bytes) = (plan.copied.files, plan.copied.bytes);
    *counts = Counts { total_files, total_bytes, is_counted: true, ..Counts::default() };
    let audience = of_copies(args.audience());
    let ends = [&from, &to.place];
    let copying = Copying { ends, new_name, way, by, endpoint, audience, interrupt, server };
    let scope = interrupt.scope();
    let applying = Applying { target, scope: &scope, failures: Vec::new() };
    let code = Run { plan, options: &options, source, copying, out }.finish(applying)?;
    if matches!(code, ExitCode::Success | ExitCode::Vanished) && !options.is_rehearsal {
        *counts = Counts { files: total_files, bytes: total_bytes, ..*counts };
    }
    Ok(code)
}

/// Whether hikyaku is not used on a host.
fn is_by_sftp(ends: [&End; 2]) -> bool {
    ends.iter().any(|end| end.way() == Carried::Sftp)
}

/// How the copies of contents go. A single host without hikyaku is copied with over the session that lists its files, and by
/// SFTP again if that is lost. Of two hosts the other one may have hikyaku.
fn carried<'a>(
    (way, by): (&WayPlan, By),
    ends: [&'a End; 2],
    far: usize,
) -> (WayPlan, By, Option<OpenSftp<'a>>) {
    let server = ends.into_iter().find_map(|end| end.link().and_then(Link::only_way));
    let server = server.map(|(client, commands)| OpenSftp { client, commands });
    match is_by_sftp(ends) {
        false => (way.clone(), by, server),
        true if far == 1 => (way.clone(), By::Sftp, server),
        // The user was asked before whether hikyaku is to be sent.
        true => (WayPlan { asking: Asking::Never, ..way.clone() }, by, None),
    }
}

/// The output of the copies. For a program it is the changes of the plan, and the sums at the end.
fn of_copies(audience: Audience) -> Audience {
    match audience {
        Audience::Events | Audience::Document => Audience::Quiet,
        audience => audience,
    }
}

/// The state of the target's root in a plan.
fn planned(root: Root) -> Target {
    match root {
        Root::There => Target::There,
        Root::Made => Target::New,
        Root::Absent => Target::Absent,
    }
}

/// The source and the target.
fn locations(args: &SyncArgs) -> Result<[Location; 2]> {
    let [source, target] = &args.paths[..] else {
        return Err(usage("one source at a time; try: a command for each source"));
    };
    let settings = settings::of_user()?;
    let parsed = |path| {
        Location::named(path, &settings).map_err(|error| {
            let remedy = error.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            usage(&format!("{error}{remedy}"))
        })
    };
    let ends = [parsed(source)?, parsed(target)?];
    check_ends([&ends[0], &ends[1]])?;
    Ok(ends)
}

/// Refuses options that the SFTP servers of hosts cannot follow, before they are contacted. `far` is the number of such hosts.
fn check_far((far, hosts): (usize, EndHosts), options: &Options) -> Result<()> {
    let is_by_sftp = far > 0 && hosts == EndHosts::BySftp;
    if is_by_sftp && options.window == Window::Exact { Err(no_nanoseconds()) } else { Ok(()) }
}

/// Refuses what daemons at an end cannot do, before they are contacted.
fn check_daemons([source, target]: [&Location; 2], by: By, options: &Options) -> Result<()> {
    let daemons = |end: &Location| match end {
        Location::Servers(servers) => servers.servers.clone(),
        _ => Vec::new(),
    };
    let [from, to] = [daemons(source), daemons(target)];
    if !(from.is_empty() && to.is_empty()) {
        by.of_daemon(None)?;
    }
    if to.len() > 1 {
        let text = format!("'{target}': a synchronization changes one server");
        return Err(misuse(text, "hikyaku cp, or the same command for each server"));
    }
    if from.len() > 1 && options.sources == Sources::Removed {
        let text = "--remove-source-files is not possible where several servers are the source";
        return Err(misuse(text, "the same command for each server"));
    }
    // A directory of the source that is in the target is known by the name of its server only where that is the only one.
    if from.len() > 1 && options.deletion.is_some() && to.iter().any(|to| from.contains(to)) {
        let text = format!("'{target}': this server is one of those that are the source");
        return Err(misuse(text, "another target, or leave out --delete"));
    }
    Ok(())
}

/// The login of the session with a single host, which the copies of contents use as well.
fn shared_login(way: &WayPlan, ends: [&Location; 2]) -> Option<SharedLogin> {
    match ends {
        [Location::Remote(_), Location::Remote(_)] => None,
        [Location::Remote(host), _] | [_, Location::Remote(host)] => {
            SharedLogin::new(&way.ssh, &host.login)
        }
        _ => None,
    }
}

/// Refuses to compare nanoseconds where an end does not have them.
fn check_window(ends: [&End; 2], options: &Options) -> Result<()> {
    let is_exact = options.window == Window::Exact;
    let has_all = ends.into_iter().all(End::has_nanoseconds);
    if is_exact && !has_all { Err(no_nanoseconds()) } else { Ok(()) }
}

fn no_nanoseconds() -> Error {
    misuse(
        "--modify-window -1 compares nanoseconds, and a far side tells whole seconds",
        "leave it out, or -I, which copies all files",
    )
}

/// The error of a rule: a mistake of the command line, or a file that cannot be read.
fn bad_rule(bad: BadRule) -> Error {
    match bad {
        BadRule::Text(text) => usage(&text),
        BadRule::File { path, cause } => {
            ExitCode::WillFail.error(cause).context(path.display().to_string())
        }
    }
}

/// An error of the command line.
pub(crate) fn usage(text: &str) -> Error {
    match text.split_once("; try: ") {
        Some((text, remedy)) => misuse(text, remedy),
        None => ExitCode::Usage.error(text),
    }
}

/// Refuses options that mean nothing without others.
fn check(options: &Options) -> Result<()> {
    if options.deletion.is_some() && !options.is_recursive {
        return Err(usage("--delete is about whole directories; try: with -r or -a"));
    }
    if options.sources == Sources::Removed && !options.keeps_times {
        return Err(usage("--remove-source-files compares times at the end; try: with -t or -a"));
    }
    Ok(())
}

/// The rules, and behind them that what was kept by an earlier run stays, as in rsync.
fn with_backups(mut rules: Rules, options: &Options) -> Result<Rules> {
    let Some(suffix) = &options.backup else { return Ok(rules) };
    if suffix.is_empty() || suffix.contains('/') {
        return Err(usage("--suffix is a part of a name: it is not empty, and has no slash"));
    }
    if options.deletion.is_some_and(|deletion| deletion.excluded == Excluded::Stay) {
        rules.filter(&format!("P *{suffix}")).map_err(bad_rule)?;
    }
    Ok(rules)
}

/// Whether no name in a directory takes part, or not even the directory: it is the one name of the transfer at most.
fn is_sole(side: &Side, dir: Option<&[u8]>, rules: &Rules) -> bool {
    if dir.is_some_and(|dir| !rules.copies(dir, true)) {
        return true;
    }
    let dir = dir.unwrap_or_default();
    let copies = |item: &Item| rules.copies(&join(dir, &item.name), item.meta.kind == Kind::Dir);
    // What cannot be read is told when it is its turn.
    side.list(dir).is_ok_and(|items| !items.iter().any(copies))
}

/// The options as far as the ends have what is to be kept.
fn between(options: Options, (source, target): (&Side, &Side), ends: [&End; 2]) -> Options {
    let can_keep_times_alone = |link: &Link| link.way() != Carried::Ssh || link.has(TIMES_ALONE);
    let can_keep_times_alone = ends.iter().filter_map(|end| end.link()).all(can_keep_times_alone);
    let is_native = |end: &&End| end.way() != Carried::Sftp && !end.is_storage();
    let options = options.between(source, target);
    Options {
        copied: options.copied(can_keep_times_alone),
        odd_times: if ends.iter().all(is_native) { OddTimes::Copied } else { OddTimes::Lost },
        ..options
    }
}

fn target_side(target: &TargetRoot<'_>, names: Option<&Names>) -> Result<Side> {
    let inner = match target.root {
        Root::Absent => Side::absent(),
        Root::There | Root::Made => target.place.side()?,
    };
    let told = names.and_then(|names| names.wanted().into_iter().next());
    Ok(match (&target.new_name, told) {
        (Some(own), Some(told)) => inner.renamed(told, own.clone()),
        _ => inner,
    })
}

/// A plan that is carried out.
struct Run<'a> {
    plan: Plan,
    options: &'a Options,
    source: &'a Side,
    copying: Copying<'a>,
    out: Printer,
}

impl Run<'_> {
    fn finish(mut self, mut applying: Applying<'_>) -> Result<ExitCode> {
        let options = self.options;
        let mut permit = permit(&self.plan, options)?;
        if let Some(path) = self.plan.deleted_source() {
            return Err(source_in_target(path));
        }
        if options.is_rehearsal {
            if permit == Permit::Granted {
                self.out.deletions(&self.plan)?;
            }
        } else {
            if permit == Permit::Granted {
                applying.delete(&self.plan.early).map_err(ended)?;
            }
            applying.prepare(&self.plan).map_err(ended)?;
            let files = std::mem::take(&mut self.plan.files);
            if self.copied(&files, &applying)? == Copied::NotAll && permit == Permit::Granted {
                permit = Permit::NotCopied;
            }
            if permit == Permit::Granted {
                self.out.deletions(&self.plan)?;
                applying.delete(&self.plan.delete).map_err(ended)?;
                // What takes the place of a directory comes when the directory has gone.
                applying.links(&self.plan.late_links).map_err(ended)?;
                let files = std::mem::take(&mut self.plan.late_files);
                if self.copied(&files, &applying)? == Copied::NotAll {
                    permit = Permit::NotCopied;
                }
            }
            applying.set_copied(&self.plan).map_err(ended)?;
            if permit != Permit::NotCopied {
                applying.remove_sources(self.source, &self.plan).map_err(ended)?;
            }
            self.copy_dirs(applying.target)?;
            applying.finish(&self.plan).map_err(ended)?;
        }
        self.out.summary(&self.plan)?;
        self.out.flush()?;
        Ok(outcome(&self.plan, &applying.failures, permit))
    }

    /// Copies directories, without what is in them, for the times that the target cannot be told. What fails is told when
    /// they are set.
    fn copy_dirs(&self, target: &Side) -> Result<()> {
        let is_due = |dir: &&SetDir| {
            let time = dir.setting.modified.filter(|time| !target.sets_time(*time));
            time.is_some() && !dir.path.is_empty()
        };
        // A directory under another name would be copied into itself.
        if !self.options.copies_odd_times() || self.copying.new_name.is_some() {
            return Ok(());
        }
        let dirs = self.plan.due_dirs().filter(is_due);
        let dirs: Vec<u8> = dirs.flat_map(|dir| [&dir.path[..], b"\0"].concat()).collect();
        self.copying.run(What::Dirs, &dirs, self.options).map(drop)
    }

    /// Copies the files of a list. What has gone from the source meanwhile is not to be copied.
    fn copied(&mut self, files: &[u8], applying: &Applying<'_>) -> Result<Copied> {
        if self.copying.run(What::Files, files, self.options)? == Copied::All {
            return Ok(Copied::All);
        }
        let ends = (self.source, applying.target);
        match review(files, ends, self.options, applying.scope).map_err(ended)? {
            Review::NotAll => Ok(Copied::NotAll),
            Review::Vanished(names) => {
                self.plan.vanished.extend(names);
                Ok(Copied::All)
            }
        }
    }
}

/// Tells the user what failed, and how it ended.
fn outcome(plan: &Plan, failures: &[String], permit: Permit) -> ExitCode {
    for line in plan.failures.iter().chain(failures) {
        say(Tone::Error, line);
    }
    for path in &plan.vanished {
        say(Tone::Warning, format_args!("{path}: removed before it was read"));
    }
    let deleted = plan.deletions();
    match permit {
        Permit::TooMany(most) => {
            let text = "names would have to be deleted, more than";
            say(Tone::Error, format_args!("{deleted} {text} {most}: none is deleted"));
        }
        Permit::NotCopied if deleted > 0 => {
            say(Tone::Warning, "not all files were copied, so what the source does not have stays");
        }
        Permit::Unread => {
            let text = "some of the source could not be read, and no file was found";
            say(Tone::Warning, format_args!("{text}, so what the source does not have stays"));
        }
        Permit::NotCopied | Permit::Granted => {}
    }
    let has_failures = !plan.failures.is_empty() || !failures.is_empty();
    match permit {
        Permit::TooMany(_) => ExitCode::TooManyDeletions,
        Permit::NotCopied | Permit::Unread => ExitCode::Partial,
        Permit::Granted if has_failures => ExitCode::Partial,
        Permit::Granted if !plan.vanished.is_empty() => ExitCode::Vanished,
        Permit::Granted => ExitCode::Success,
    }
}

fn source_in_target(source: &[u8]) -> Error {
    let shown = Shown::new(source);
    let text = format!("the source is in the target ({shown}), and would be deleted");
    let refused = io::Error::new(ErrorKind::PermissionDenied, text);
    with_remedy(refused.into(), Some(format!("try: --exclude '/{shown}'")))
}

fn ended(why: Why) -> Error {
    let kind = match why.is_end() {
        true => ErrorKind::ConnectionAborted,
        false => ErrorKind::Other,
    };
    io::Error::new(kind, why.text).into()
}

fn no_plan(no: NoPlan) -> Error {
    match no {
        NoPlan::End(why) => ended(why),
        NoPlan::Output(error) => unwritten(error),
    }
}
