//! One location after the other.

use crate::args::LsArgs;
use crate::gather::{Gathered, gather};
use crate::print::{Entries, Names, lines};
use anyhow::{Error, Result};
use hikyaku_console::{Document, ExitCode, Tone, causes, print, say, with_remedy};
use hikyaku_reach::settings;
use hikyaku_session::ClientConfig;
use hikyaku_store::{ErrorKind, StorePath};
use hikyaku_stores::{
    Cookies, HasAll, HostOptions, Location, LocationError, OpenError, Opening, Storage, code_of,
};
use std::ffi::OsString;
use std::io::{IsTerminal, stdout};

/// Lists each location.
///
/// # Errors
///
/// The command line has a mistake, or the only location cannot be listed.
pub fn run(args: &LsArgs) -> Result<ExitCode> {
    let settings = settings::of_user()?;
    let named = |address: &OsString| Location::named(address, &settings).map_err(misspelt);
    let locations = args.addresses.iter().map(named).collect::<Result<Vec<Location>>>()?;
    let (several, cookies) = (locations.len() > 1, args.cookies.read()?);
    let (mut codes, mut entries) = (Vec::new(), Entries::default());
    for (number, location) in locations.iter().enumerate() {
        match one(location, (args, &cookies), &mut codes) {
            Ok(gathered) => {
                let typed = location.to_string();
                let names = match stdout().is_terminal() {
                    true => Names::Shown,
                    false => Names::Raw,
                };
                if args.is_for_program() {
                    entries.add(&typed, &gathered, args);
                } else {
                    let mut text = lines((&typed, several), &gathered, (args, names));
                    if several && number + 1 < locations.len() {
                        text.push(b'\n');
                    }
                    print(text)?;
                }
                for (path, kind) in &gathered.failed {
                    say(Tone::Error, format_args!("{}: {kind}", place(&typed, path)));
                    codes.push(code_of(*kind));
                }
            }
            Err(error) if !several => return Err(error),
            Err(error) => {
                codes.push(ExitCode::of(&error, &[hikyaku_reach::exit_code]));
                say(Tone::Error, causes(&error));
            }
        }
    }
    if args.is_for_program() {
        print(Document::new(entries).line())?;
    }
    Ok(match codes.is_empty() {
        true => ExitCode::Success,
        false => ExitCode::of_pieces(codes),
    })
}

/// Lists a location.
fn one(
    location: &Location,
    (args, cookies): (&LsArgs, &Cookies),
    codes: &mut Vec<ExitCode>,
) -> Result<Gathered> {
    let silence = args.silence.timeout;
    let client = match location {
        Location::Servers(servers) => {
            Some(ClientConfig { silence, ..args.connect.client(&servers.servers)? })
        }
        _ => None,
    };
    let hosts = HostOptions { way: args.way(), ..HostOptions::default() };
    let endpoint = args.endpoint.clone();
    let (family, cookies) = (args.connect.family.family(), cookies.clone());
    let opening =
        Opening { client, endpoint, hosts, silence, family, cookies, ..Opening::default() };
    let storage = Storage::connect(location, &opening).map_err(OpenError::explained)?;
    storage.announce();
    let opened = storage.at(location).map_err(OpenError::explained)?;
    if opened.has_all == HasAll::No {
        codes.push(ExitCode::MayPass);
    }
    gather(&opened, args).map_err(|error| failed(location, error.kind))
}

/// The location itself cannot be listed.
fn failed(location: &Location, kind: ErrorKind) -> Error {
    code_of(kind).error(format!("{location}: {kind}"))
}

/// The location of a path.
fn place(location: &str, path: &StorePath) -> String {
    match path == &StorePath::ROOT {
        true => location.to_owned(),
        false => format!("{}/{path}", location.trim_end_matches('/')),
    }
}

fn misspelt(error: LocationError) -> Error {
    let remedy = error.remedy();
    with_remedy(ExitCode::Usage.error(error.to_string()), remedy)
}
