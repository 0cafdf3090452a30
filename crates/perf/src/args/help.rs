//! What `hikyaku perf --help` teaches.

pub(super) const EXAMPLES: &str = "\
Examples:
  hikyaku perf -s                        wait for clients on UDP port 5208
  hikyaku perf -c example.org            measure upload for ten seconds
  hikyaku perf -c example.org -R -t 30   download, half a minute
  hikyaku perf -c example.org -n 10G -J  ten gigabytes, the result as JSON
  hikyaku perf -c example.org -b 500M    at most 500 Mbit/s of payload
  hikyaku perf -c example.org -O 5 -P 4  four connections, without the first five seconds
  hikyaku perf -c example.org --compete tcp:4:cubic
                                         beside four TCP flows: who gets what, who loses what
  hikyaku lab run --rtt 200ms --loss 1% --server-cmd 'hikyaku perf -s' -- hikyaku perf -c server

All figures of 'received' and 'goodput' are bytes given to the receiving program, each byte once,
at both ends. 'wire' is what the sender sent, headers of IP and UDP and retransmissions included.
The time begins when the receiver lets the sender begin, so the start-up counts unless -O omits it.

--compete takes three times -t: the competitors alone, all together, this test alone. The figures of
the test are of its own two parts; the last table has each part without its first -O seconds. Harm
is what competitors lose by this test as a share of what they have alone; below zero they gained.
They use a TCP port of the server (its own number, if that is free), open until they have come;
-s --no-compete refuses them.

The server keeps a key and prints its fingerprint. The client remembers it at first use and refuses
another one later; --peer-key accepts only one from the beginning.";
