//! s2n-quic: one connection, one stream, always read in order.
#![forbid(unsafe_code)]

use anyhow::{Context, Result};
use hikyaku_bench_peers::{
    Args, Control, Goodput, HOST, bind, chunk, count, run, send_until_over, write_identity,
};
use s2n_quic::client::{Client, Connect};
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::{io, limits::Limits};
use s2n_quic::stream::ReceiveStream;
use s2n_quic::{Connection, Server};
use std::time::{Duration, Instant};
use tokio::time::sleep;

fn main() -> Result<()> {
    run(serve, send)
}

async fn serve(args: &Args) -> Result<()> {
    let (certificate, key) = write_identity(&args.certificate)?;
    let builder = Server::builder()
        .with_tls((certificate.as_str(), key.as_str()))?
        .with_io(io(args)?)?
        .with_limits(limits(args)?)?;
    let mut server = match args.control {
        Control::Cubic => builder.with_congestion_controller(Cubic::default())?.start()?,
        Control::Bbr => builder.with_congestion_controller(Bbr::default())?.start()?,
    };
    let mut connection: Connection = server.accept().await.context("the endpoint closed")?;
    let receive = async |goodput: &mut Goodput| {
        let stream = connection.accept_receive_stream().await?;
        read(stream.context("no stream came")?, goodput).await
    };
    count(args, receive).await?;
    connection.close(0_u32.into());
    // There is no way to wait until the close has left.
    sleep(Duration::from_millis(300)).await;
    Ok(())
}

async fn read(mut stream: ReceiveStream, goodput: &mut Goodput) -> Result<()> {
    let mut chunks: [bytes::Bytes; 32] = Default::default();
    loop {
        let (count, is_open) = stream.receive_vectored(&mut chunks).await?;
        let bytes = chunks[..count].iter_mut().map(|chunk| std::mem::take(chunk).len()).sum();
        goodput.add(Instant::now(), bytes);
        if !is_open {
            return Ok(());
        }
    }
}

async fn send(args: &Args) -> Result<()> {
    let builder = Client::builder()
        .with_tls(args.certificate.as_path())?
        .with_io(io(args)?)?
        .with_limits(limits(args)?)?;
    let client = match args.control {
        Control::Cubic => builder.with_congestion_controller(Cubic::default())?.start()?,
        Control::Bbr => builder.with_congestion_controller(Bbr::default())?.start()?,
    };
    let connect = Connect::new(args.address).with_server_name(HOST);
    let mut connection = client.connect(connect).await?;
    let mut stream = connection.open_send_stream().await?;
    let chunk = chunk();
    let send = async { while stream.send(chunk.clone()).await.is_ok() {} };
    send_until_over(args, send).await;
    Ok(())
}

fn io(args: &Args) -> Result<io::Default> {
    Ok(io::Default::builder()
        .with_rx_socket(bind(args)?)?
        .with_base_mtu(args.mtu)?
        .with_initial_mtu(args.mtu)?
        .with_max_mtu(args.mtu)?
        .build()?)
}

fn limits(args: &Args) -> Result<Limits> {
    let window = u64::from(args.window);
    Ok(Limits::new()
        .with_data_window(window)?
        .with_unidirectional_data_window(window)?
        .with_max_send_buffer_size(args.window)?
        .with_max_ack_ranges(255)?)
}
