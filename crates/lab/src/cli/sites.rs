//! `lab hosts` and `lab check`, which exist for labs of sites only.

use crate::args::{CheckArgs, HostsArgs};
use crate::check::check_named;
use crate::site::{Host, Layout};
use crate::{namespace, runtime, trouble};
use anyhow::{Result, bail};
use hikyaku_console::{print, print_error};
use serde::Serialize;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// A host or gateway in the output.
#[derive(Serialize)]
struct Entry {
    name: String,
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
    namespace: PathBuf,
}

/// Lists the hosts of a lab, then its gateways.
pub(super) fn hosts(args: &HostsArgs) -> Result<()> {
    runtime::socket_of(&args.name)?;
    let Some(layout) = runtime::layout_of(&args.name)? else {
        let text = format!("lab '{}' has a client and servers, and no sites", args.name);
        return Err(trouble::of(ErrorKind::InvalidInput, text));
    };
    let entry = |host: Host| entry(&args.name, &layout, host);
    let hosts: Vec<Entry> = layout.hosts().chain(layout.gateways()).map(entry).collect();
    if args.json {
        return print(serde_json::to_string_pretty(&hosts)? + "\n");
    }
    let mut text = String::new();
    for Entry { name, ipv4, ipv6, namespace } in &hosts {
        let (ipv4, ipv6) = (ipv4.to_string(), ipv6.to_string());
        let path = namespace.display();
        text.push_str(&format!("{name:<18} {ipv4:<14} {ipv6:<20} nsenter --net={path}\n"));
    }
    text.push_str(&format!("\nhikyaku lab exec {} HOST -- COMMAND\n", args.name));
    print(text)
}

fn entry(lab: &str, layout: &Layout, host: Host) -> Entry {
    let name = layout.name(host);
    let namespace = namespace::path_of(&namespace::name_of_host(lab, &name));
    Entry { name, ipv4: host.ipv4(), ipv6: host.ipv6(), namespace }
}

/// Measures all links, and fails if one deviates from its settings.
pub(super) fn check(args: &CheckArgs) -> Result<()> {
    if !args.json {
        print(format!(
            "{:>12}    {:<12} {:>9} {:>9}     {:>10} {:>10}         {:>8} {:>8}\n",
            "from", "to", "delay", "measured", "rate", "measured", "loss", "measured"
        ))?;
    }
    let check = check_named(&args.name, args.each, &mut |way| {
        if args.json { Ok(()) } else { print(format!("{way}\n")) }
    })?;
    if args.json {
        print(serde_json::to_string_pretty(&check.ways)? + "\n")?;
    }
    for problem in &check.problems {
        print_error(format!("lab: NOT VALID: {problem}\n"));
    }
    if !check.problems.is_empty() {
        bail!("the measurement is not valid: the lab did not keep up");
    }
    match check.ways.iter().filter(|way| !way.is_as_asked()).count() {
        0 => Ok(()),
        count => {
            bail!("{count} of {} link directions deviate from their settings", check.ways.len())
        }
    }
}
