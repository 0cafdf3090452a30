//! quinn: one connection, one stream.
#![forbid(unsafe_code)]

use anyhow::{Context as _, Result};
use bytes::Bytes;
use clap::Parser;
use hikyaku_bench_peers::{
    Args, Control, GRACE, Goodput, HOST, Reads, Role, bind, chunk, client_tls, on_one_thread,
    segments_that_fit, server_tls,
};
use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{
    AsyncUdpSocket, ClientConfig, Endpoint, EndpointConfig, Runtime, ServerConfig, TokioRuntime,
    TransportConfig, UdpPoller, VarInt,
};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
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
        let ordered = args.reads == Reads::Ordered;
        // Bound to many chunks a call where the stack allows it: with order.
        let mut chunks: [Bytes; 32] = Default::default();
        loop {
            let count = if ordered {
                let Some(count) = stream.read_chunks(&mut chunks).await? else { return Ok(()) };
                chunks[..count].iter().map(Bytes::len).sum()
            } else {
                let Some(chunk) = stream.read_chunk(1 << 20, false).await? else { return Ok(()) };
                chunk.bytes.len()
            };
            goodput.add(Instant::now(), count);
        }
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
        Control::Bbr => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
    };
    transport
}

fn endpoint(args: &Args, server: Option<ServerConfig>) -> Result<Endpoint> {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(args.payload())?;
    let runtime = Arc::new(TokioRuntime);
    let socket = Capped { inner: runtime.wrap_udp_socket(bind(args)?)?, payload: args.payload() };
    Ok(Endpoint::new_with_abstract_socket(config, server, Arc::new(socket), runtime)?)
}

/// A socket that asks for no larger batches than UDP can carry.
#[derive(Debug)]
struct Capped {
    inner: Arc<dyn AsyncUdpSocket>,
    payload: u16,
}

impl AsyncUdpSocket for Capped {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, bufs, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        segments_that_fit(self.payload, self.inner.max_transmit_segments())
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}
