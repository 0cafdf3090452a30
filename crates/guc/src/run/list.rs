//! The names in a directory of a server (`-list`), as globus-url-copy prints them: the URL, and the names below it.

use super::pairs::mistake;
use super::{keys, warn_of_passwords};
use crate::args::GucArgs;
use crate::session::{Session, Shared};
use crate::table::{TABLE, way_from};
use crate::url::Place;
use crate::walk::{Seen, walk};
use anyhow::Result;
use hikyaku_console::{Audience, Scope, Totals, misuse, print_event, printed};
use hikyaku_fs::Shown;
use hikyaku_gridftp::{Facts, Kind};
use hikyaku_store_ftp::{Enter, Item, Notes};
use serde_json::json;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};

/// Prints the names in the directory at `url`, and with `-r` those below it.
pub(super) fn list(
    args: &GucArgs,
    url: &OsStr,
    (scope, show): (&Scope, &Arc<Totals>),
) -> Result<()> {
    let Place::Remote(remote) = Place::parse(url).map_err(mistake)? else {
        return Err(misuse("only a directory of a server is listed", "ls"));
    };
    for note in TABLE.check(&args.given, &[way_from(&remote.server)])? {
        show.remark(note);
    }
    let (server, notes, plain) = (&remote.server, Arc::new(Notes::none()), Once::new());
    let keys = keys(args, std::iter::once(server))?;
    warn_of_passwords(show, std::iter::once(server));
    let shared = Shared { scope, show, notes: &notes, plain: &plain };
    let mut session = Session::new(args, server, keys, shared);
    let stop = session.stop();
    let _stops = scope.on_stop(move || stop.store(true, Ordering::Relaxed));
    let mut is_first = true;
    let mut title = || match std::mem::take(&mut is_first) && !args.audience().is_program() {
        true => printed(writeln!(io::stdout(), "{}", Shown::new(remote.to_string().as_bytes()))),
        false => Ok(()),
    };
    let listed = walk(
        &mut session,
        |session| session,
        &remote.path,
        |_, _, seen| {
            let entries = match seen {
                Seen::Entries(entries) => entries,
                Seen::Failed(error) => return Err(error),
            };
            title()?;
            for Item { path, facts, enter, .. } in entries {
                print_one(args, path.as_bytes(), facts)?;
                if *enter == Enter::Yes && !args.recurse {
                    *enter = Enter::No;
                }
            }
            Ok(())
        },
    );
    listed.and_then(|_| title())?;
    session.quit();
    Ok(())
}

fn print_one(args: &GucArgs, path: &[u8], facts: &Facts) -> Result<()> {
    let (kind, mark) = match facts.kind {
        Kind::File => ("file", ""),
        Kind::Directory | Kind::Listed => ("directory", "/"),
        Kind::Link => ("link", ""),
        Kind::Other => ("other", ""),
    };
    match args.audience() {
        audience @ (Audience::Events | Audience::Document) => {
            let event = json!({
                "event": "entry",
                "path": String::from_utf8_lossy(path),
                "kind": kind,
                "bytes": facts.size,
                "modified": facts.time().map(|(seconds, _)| seconds),
            });
            printed(print_event(audience, &event))
        }
        Audience::Person | Audience::Lines | Audience::Quiet => {
            printed(writeln!(io::stdout(), "    {}{mark}", Shown::new(path)))
        }
    }
}
