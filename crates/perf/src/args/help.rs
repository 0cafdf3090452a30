//! Examples and explanations at the end of `hikyaku perf --help`.

pub(super) const EXAMPLES: &str = "\
Examples:
  hikyaku perf -s                        run a server on UDP port 5208
  hikyaku perf -c example.org            upload for ten seconds
  hikyaku perf me@example.org
      the same, and ssh starts the server for this test
  hikyaku perf -c example.org -R -t 30   download for 30 seconds
  hikyaku perf -c example.org --bidir    upload and download at once
  hikyaku perf -c example.org -n 10G -J  upload ten gigabytes, print JSON
  hikyaku perf -c example.org -b 500M    limit payload to 500 Mbit/s
  hikyaku perf -c example.org --sweep 10%..110%:8 -t 5 --log-dir logs
      the curve of received against target rate
  hikyaku perf -c example.org --latency -t 5
      the round-trip time without and with load
  hikyaku perf --mesh node1,node2,node3 -t 5
      a table of the rates between all pairs of hosts
  hikyaku perf -c example.org -O 5 -P 4
      four connections, omit the first five seconds
  hikyaku perf -c example.org --compete tcp:4:cubic
      share the path with four TCP CUBIC flows
  hikyaku lab run --server-cmd 'hikyaku perf -s' -- hikyaku perf -c server
      the same over an emulated link

'received' and 'goodput' count bytes delivered to the receiving application,
each byte once; both ends print the receiver's count. 'wire' counts what the
sender sent, IP and UDP headers and retransmissions included. Time starts when
the receiver tells the sender to begin, so the start-up phase counts unless -O
omits it.

--compete runs three parts of -t seconds each: the competing flows alone, all
flows together, and this test alone. The figures of the test cover the two
parts in which it runs. The last table leaves out the first -O seconds of each
part. Harm is the share of goodput that the competing flows lose when this
test joins; a negative value means that they gained. TCP competitors connect
to a TCP port of the server, which has the number of its UDP port if that is
free. It is open until they have connected, 15 seconds at most. A server
started with --no-compete refuses such tests.

The server keeps a key and prints its fingerprint. The client remembers the
key on first use and refuses a different one later. --peer-key accepts only
the given key, also on first use.";
