//! quinn and noq have the same names for the same things, and no type in common.

/// The sender and the settings of the transport for `$stack`, quinn or a relative of it, whose `endpoint` function is
/// in scope.
#[macro_export]
macro_rules! quinn_family {
    ($stack:ident, $bbr:ident) => {
        async fn send(args: &$crate::Args) -> anyhow::Result<()> {
            use $stack::crypto::rustls::QuicClientConfig;
            let tls = QuicClientConfig::try_from($crate::client_tls(&args.certificate)?)?;
            let mut config = $stack::ClientConfig::new(std::sync::Arc::new(tls));
            config.transport_config(std::sync::Arc::new(transport(args)));
            let endpoint = endpoint(args, None)?;
            let connection = endpoint.connect_with(config, args.address, $crate::HOST)?.await?;
            let mut stream = connection.open_uni().await?;
            let chunk = $crate::chunk();
            let send = async { while stream.write_chunk(chunk.clone()).await.is_ok() {} };
            $crate::send_until_over(args, send).await;
            Ok(())
        }

        fn server_config(args: &$crate::Args) -> anyhow::Result<$stack::ServerConfig> {
            use $stack::crypto::rustls::QuicServerConfig;
            let tls = QuicServerConfig::try_from($crate::server_tls(&args.certificate)?)?;
            let mut config = $stack::ServerConfig::with_crypto(std::sync::Arc::new(tls));
            config.transport_config(std::sync::Arc::new(transport(args)));
            Ok(config)
        }

        fn transport(args: &$crate::Args) -> $stack::TransportConfig {
            use $stack::congestion::{CubicConfig, $bbr};
            let mut transport = $stack::TransportConfig::default();
            let window = $stack::VarInt::from_u32(args.window);
            transport.stream_receive_window(window).receive_window(window);
            transport.send_window(u64::from(args.window));
            // The path is known: no search, and no fall-back that congestion can set off.
            transport
                .initial_mtu(args.payload())
                .min_mtu(args.payload())
                .mtu_discovery_config(None);
            match args.control {
                $crate::Control::Cubic => transport
                    .congestion_controller_factory(std::sync::Arc::new(CubicConfig::default())),
                $crate::Control::Bbr => {
                    transport.congestion_controller_factory(std::sync::Arc::new($bbr::default()))
                }
            };
            transport
        }
    };
}
