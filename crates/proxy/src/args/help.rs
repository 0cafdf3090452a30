//! Examples and explanations at the end of `hikyaku proxy --help`.

pub(super) const EXAMPLES: &str = "\
Examples:
  hikyaku proxy me@far -L 8080:web:80
      http://localhost:8080/ here is web's port 80, seen from far
  hikyaku proxy me@far -D 1080
      curl --socks5-hostname localhost:1080 https://web/file
  hikyaku proxy me@far --http 3128
      https_proxy=http://localhost:3128 curl -O https://web/file
  hikyaku proxy me@far -L 5432:db:5432 -L 6379:cache:6379 -D 1080
  hikyaku proxy me@far -g -L 2222:inner:22
      other hosts may connect to port 2222 here
  hikyaku proxy hikyaku://far -L 8080:web:80
      far runs 'hikyaku serve --allow web:80'; no ssh is needed
  hikyaku proxy me@far --transparent eth1 --to 10.0.0.0/8
      on a router: connections of hosts at eth1, as they are
  hikyaku proxy me@far --for-command -- git clone https://example.org/x.git
      as root: connections of this command, which needs no settings
  hikyaku proxy me@far -R 8080:web:80
      http://localhost:8080/ at far is web's port 80, seen from here
  hikyaku proxy me@far -R 1080
      a SOCKS proxy at far, to what is reached from here
  hikyaku proxy me@far -f -L /tmp/db.sock:db:5432
      a Unix socket here; returns when the gateway is ready
  hikyaku proxy status  what is carried, and what limits it
  hikyaku proxy off     new connections go direct, until 'hikyaku proxy on'
  hikyaku proxy drain
      no new connections; it ends with the last one that is open

With --http there is a page that shows each connection, the buffers that its
bytes go through, and what limits it: the path, the program, the disk, or the
server. Its address is printed.

A program connects to a port here. Its bytes go to the far gateway over
hikyaku's transport, and from there to the target by a TCP connection of the
far gateway. The far gateway should be near the target. It looks names up, and
has the rights of the user that ssh has logged in as. It listens for the near
gateway only, and with -R where that says.

A program sees what it would see without the proxy: a refused connection
is refused (SOCKS and HTTP tell the reason; -L resets the connection), an
end of one direction leaves the other one open, and a reset is a reset.
If the far side is lost, all connections are reset, and the gateway
connects again by itself. Meanwhile new connections are refused, or go
direct with --direct-when-down.

Never reached are link-local, multicast and broadcast addresses and the
metadata services of clouds. Loopback addresses of the far side are reached if
-L names them (-L 8080:localhost:80).";
