//! noq, a relative of quinn: one connection, one stream.
#![forbid(unsafe_code)]

use anyhow::{Context as _, Result};
use clap::Parser;
use hikyaku_bench_peers::{
    Args, Control, GRACE, Goodput, HOST, Reads, Role, bind, chunk, client_tls, on_one_thread,
    segments_that_fit, server_tls,
};
use noq::congestion::{Bbr3Config, CubicConfig};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::udp::{RecvMeta, Transmit};
use noq::{
    AsyncUdpSocket, ClientConfig, Endpoint, EndpointConfig, Runtime, ServerConfig, TokioRuntime,
    TransportConfig, UdpSender, VarInt,
};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::time::{timeout, timeout_at};

fn main() -> Result<()> {
    let args = Args::parse();
    on_one_thread(async {
        match args.role {
            Role::Server => serve(&args).await,
            Role::Client => send(&args).await,
        }
    })
}

async fn serve(args: &Args) -> Result<()> {
    let tls = QuicServerConfig::try_from(server_tls(&args.certificate)?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport(args)));
    let endpoint = endpoint(args, Some(config))?;
    let connection = endpoint.accept().await.context("the endpoint closed")?.await?;
    let mut goodput = Goodput::new(Instant::now());
    let until = Instant::now() + args.duration();
    let receive = async {
        let mut stream = connection.accept_uni().await?;
        if args.reads == Reads::Ordered {
            while let Some(bytes) = stream.read_chunk(1 << 20).await? {
                goodput.add(Instant::now(), bytes.len());
            }
        } else {
            let mut stream = stream.into_unordered();
            while let Some(chunk) = stream.read_chunk(1 << 20).await? {
                goodput.add(Instant::now(), chunk.bytes.len());
            }
        }
        Ok(())
    };
    let ended: Result<Result<()>, _> = timeout_at(until.into(), receive).await;
    let error = ended.ok().map(|result| result.err().map_or("ended".into(), |e| format!("{e:#}")));
    goodput.report(Instant::now(), error).print()?;
    connection.close(VarInt::from_u32(0), b"done");
    endpoint.wait_idle().await;
    Ok(())
}

async fn send(args: &Args) -> Result<()> {
    let tls = QuicClientConfig::try_from(client_tls(&args.certificate)?)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport(args)));
    let endpoint = endpoint(args, None)?;
    let connection = endpoint.connect_with(config, args.address, HOST)?.await?;
    let mut stream = connection.open_uni().await?;
    let chunk = chunk();
    let send = async { while stream.write_chunk(chunk.clone()).await.is_ok() {} };
    // Whichever way it ends, the server tells.
    let _ = timeout(args.duration() + GRACE, send).await;
    let cpu = hikyaku_bench_peers::cpu_seconds();
    println!("{{\"cpu_seconds\":{cpu}}}");
    Ok(())
}

fn transport(args: &Args) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let window = VarInt::from_u32(args.window);
    transport.stream_receive_window(window).receive_window(window);
    transport.send_window(u64::from(args.window));
    // The path is known: no search, and no fall-back that congestion can set off.
    transport.initial_mtu(args.payload()).min_mtu(args.payload()).mtu_discovery_config(None);
    match args.control {
        Control::Cubic => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
        Control::Bbr => transport.congestion_controller_factory(Arc::new(Bbr3Config::default())),
    };
    transport
}

fn endpoint(args: &Args, server: Option<ServerConfig>) -> Result<Endpoint> {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(args.payload())?;
    let runtime = Arc::new(TokioRuntime);
    let socket = Capped { inner: runtime.wrap_udp_socket(bind(args)?)?, payload: args.payload() };
    Ok(Endpoint::new_with_abstract_socket(config, server, Box::new(socket), runtime)?)
}

/// A socket that asks for no larger batches than UDP can carry.
#[derive(Debug)]
struct Capped {
    inner: Box<dyn AsyncUdpSocket>,
    payload: u16,
}

impl AsyncUdpSocket for Capped {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(CappedSender { inner: self.inner.create_sender(), payload: self.payload })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[derive(Debug)]
struct CappedSender {
    inner: Pin<Box<dyn UdpSender>>,
    payload: u16,
}

impl UdpSender for CappedSender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_send(transmit, cx)
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        let most = self.inner.max_transmit_segments();
        NonZeroUsize::new(segments_that_fit(self.payload, most.get())).unwrap_or(most)
    }
}
