//! A test with a server that this client starts through ssh.

use super::connect::{Holder, Link, cut};
use crate::args::{ClientArgs, ThroughSsh};
use crate::memory;
use crate::server::SERVICE;
use crate::socket::Socket;
use crate::trouble;
use crate::wait::{Stop, wait};
use anyhow::{Context, Result};
use hikyaku_console::Scope;
use hikyaku_crypto::cipher_name;
use hikyaku_net::Policy;
use hikyaku_reach::settings::{self, Typed};
use hikyaku_reach::{Carriers, Way, WayPlan};
use hikyaku_units::Rate;
use std::time::Instant;

/// Starts the server and connects to it.
pub(super) fn connect(args: &ClientArgs, ssh: &ThroughSsh, scope: &Scope) -> Result<Link> {
    let way = way(args, ssh, scope.clone())?;
    let reached = way.open(&ssh.destination).map_err(trouble::of_reach)?;
    let connection = reached.connection.into_udp().context("the test needs UDP")?;
    let endpoint = reached.side.endpoint().context("the far side is this process")?;
    let socket = Socket::of(endpoint);
    super::pin_drivers(args.common.cpu)?;
    let now = Instant::now();
    let stats = wait(connection.stats(), &Stop::default(), None).map_err(cut)?;
    let handshake = stats.and_then(|stats| stats.handshake).unwrap_or_default();
    Ok(Link {
        socket,
        holder: Holder::FarSide(Box::new(reached.side)),
        connections: vec![connection],
        rivals: Vec::new(),
        first_packet: now - handshake,
        handshake,
    })
}

fn way(args: &ClientArgs, ssh: &ThroughSsh, scope: Scope) -> Result<Way> {
    let transport = &args.common.transport;
    let plan = WayPlan {
        ssh: ssh.ssh.clone(),
        typed: Typed {
            cipher: ssh.cipher.map(|cipher| cipher_name(cipher).to_owned()),
            rate: args.plan.target.map(Rate::from_bits_per_sec),
            window: Some(transport.receive_window),
            policy: (transport.policy != Policy::Fair).then(|| transport.policy.text()),
            ports: ssh.ports.clone(),
            remote_path: ssh.remote_path.clone(),
            ..Typed::default()
        },
        carriers: Some(Carriers::Udp),
        bootstrap: ssh.bootstrap.clone(),
        ..WayPlan::default()
    };
    let (host, settings) = (&ssh.destination.host, settings::of_user()?);
    plan.way((host, &settings), (SERVICE, memory::of_server()), scope)
}
