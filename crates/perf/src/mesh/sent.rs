//! `--bootstrap` of a mesh: hosts without hikyaku get one before the first test.

use super::MeshArgs;
use super::hosts::Host;
use anyhow::Result;
use hikyaku_console::{Scope, Tone, say};
use hikyaku_reach::bootstrap::{Consent, Delivery, Offer};
use hikyaku_reach::{NOT_THERE, NoAnswer, Question, settings};

/// The mesh, with the places of the programs that were sent. A host to which none can be sent fails in its tests.
///
/// # Errors
///
/// The settings are wrong, the program cannot be sent to any host, or ssh does not start.
pub(super) fn to_hosts(args: &MeshArgs, scope: &Scope) -> Result<MeshArgs> {
    let (mut args, settings) = (args.clone(), settings::of_user()?);
    let mut hosts = std::mem::take(&mut args.hosts.0);
    for host in &mut hosts {
        let Some(login) = &host.login else { continue };
        let offer = args.bootstrap.offer(&settings, &login.host)?;
        // Nobody is asked at a hundred hosts.
        if offer.consent == Consent::Always && !has_hikyaku(&args, host, scope)? {
            host.sent = sent(&args, host, &offer, scope);
        }
    }
    args.hosts.0 = hosts;
    Ok(args)
}

/// Whether a program is found on the host, or another reason than its absence keeps it from starting.
fn has_hikyaku(args: &MeshArgs, host: &Host, scope: &Scope) -> Result<bool> {
    let Some(login) = &host.login else { return Ok(true) };
    let path = args.remote_path.as_deref();
    match Question::to_hikyaku(&args.ssh, (login, path), "--version")?.ask(scope) {
        Ok(answer) => Ok(answer.code != Some(NOT_THERE)),
        Err(error @ NoAnswer::Spawn { .. }) => Err(error.into()),
        Err(NoAnswer::Late | NoAnswer::TooLong) => Ok(true),
    }
}

/// Sends a program to the host, and returns where it is.
fn sent(args: &MeshArgs, host: &Host, offer: &Offer, scope: &Scope) -> Option<String> {
    match offer.deliver((&args.ssh, host.login.as_ref()?), scope) {
        Delivery::Done { path, .. } => Some(path),
        Delivery::NotAllowed => None,
        Delivery::Failed(why) => {
            let remedy = why.remedy().map(|remedy| format!("\n{remedy}")).unwrap_or_default();
            say(Tone::Note, format_args!("{why}{remedy}"));
            None
        }
    }
}
