//! quinn: one connection, one stream.
#![forbid(unsafe_code)]

use anyhow::{Context as _, Result};
use bytes::Bytes;
use hikyaku_bench_peers::{
    Args, Goodput, Reads, bind, count, quinn_family, run, segments_that_fit,
};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{
    AsyncUdpSocket, Endpoint, EndpointConfig, Runtime, ServerConfig, TokioRuntime, UdpPoller,
    VarInt,
};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

quinn_family!(quinn, BbrConfig);

fn main() -> Result<()> {
    run(serve, send)
}

async fn serve(args: &Args) -> Result<()> {
    let endpoint = endpoint(args, Some(server_config(args)?))?;
    let connection = endpoint.accept().await.context("the endpoint closed")?.await?;
    let receive = async |goodput: &mut Goodput| {
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
    count(args, receive).await?;
    connection.close(VarInt::from_u32(0), b"done");
    endpoint.wait_idle().await;
    Ok(())
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
