//! noq, a relative of quinn: one connection, one stream.
#![forbid(unsafe_code)]

use anyhow::{Context as _, Result};
use hikyaku_bench_peers::{
    Args, Goodput, Reads, bind, count, quinn_family, run, segments_that_fit,
};
use noq::udp::{RecvMeta, Transmit};
use noq::{
    AsyncUdpSocket, Endpoint, EndpointConfig, Runtime, ServerConfig, TokioRuntime, UdpSender,
    VarInt,
};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

quinn_family!(noq, Bbr3Config);

fn main() -> Result<()> {
    run(serve, send)
}

async fn serve(args: &Args) -> Result<()> {
    let endpoint = endpoint(args, Some(server_config(args)?))?;
    let connection = endpoint.accept().await.context("the endpoint closed")?.await?;
    let receive = async |goodput: &mut Goodput| {
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
