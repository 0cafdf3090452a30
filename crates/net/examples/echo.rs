//! A server that echoes, and a client that sends it a line: the whole use of the crate on a page.
//!
//! ```text
//! cargo run --example echo                          # both in one process
//! cargo run --example echo -- serve [::]:5201       # prints the fingerprint
//! cargo run --example echo -- ask HOST:5201 FINGERPRINT "some words"
//! ```

use hikyaku_net::blocking::block_on;
use hikyaku_net::{
    ConnectConfig, Endpoint, EndpointConfig, Identity, Listener, ListenerConfig, ServerCredentials,
    Target, Trust,
};
use std::error::Error;
use std::net::SocketAddr;
use std::thread;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => both(),
        ["serve", address] => {
            let identity = Identity::generate()?;
            println!("{}", identity.fingerprint());
            serve(&listen(address.parse()?, &identity)?, usize::MAX)
        }
        ["ask", target, fingerprint, words] => {
            block_on(ask(target.parse()?, Trust::Pinned(fingerprint.parse()?), words))
        }
        _ => Err("usage: echo [serve ADDRESS | ask HOST:PORT FINGERPRINT WORDS]".into()),
    }
}

fn both() -> Result<()> {
    let identity = Identity::generate()?;
    let listener = listen("127.0.0.1:0".parse()?, &identity)?;
    let address = listener.local_addr();
    let server = thread::spawn(move || serve(&listener, 1));
    block_on(ask(address.into(), Trust::Pinned(identity.fingerprint()), "carrier pigeon"))?;
    server.join().map_err(|_| "the server panicked")?
}

fn listen(address: SocketAddr, identity: &Identity) -> Result<Listener> {
    Ok(Listener::bind(address, ListenerConfig::new(ServerCredentials::new(identity)))?)
}

fn serve(listener: &Listener, connections: usize) -> Result<()> {
    block_on(async {
        for _ in 0..connections {
            let connection = listener.accept().await?;
            let (mut send, mut receive) = connection.accept_stream().await?.split();
            while let Some(run) = receive.read_chunk().await? {
                send.write_chunk(run.to_vec().into()).await?;
            }
            send.finish();
            send.delivered().await?;
        }
        Ok(())
    })
}

async fn ask(target: Target, trust: Trust, words: &str) -> Result<()> {
    let endpoint = Endpoint::bind("[::]:0".parse()?, EndpointConfig::default())
        .or_else(|_| Endpoint::bind(([0, 0, 0, 0], 0).into(), EndpointConfig::default()))?;
    let connection = endpoint.connect(target, ConnectConfig::new(trust)).await?;
    let mut stream = connection.open_stream().await?;
    stream.write_chunk(words.as_bytes().to_vec().into()).await?;
    stream.finish();
    let mut answer = Vec::new();
    while let Some(run) = stream.read_chunk().await? {
        answer.extend(run.to_vec());
    }
    println!("{}", String::from_utf8_lossy(&answer));
    endpoint.shutdown().await;
    Ok(())
}
