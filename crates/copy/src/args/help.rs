//! What `hikyaku cp --help` teaches.

pub(super) const EXAMPLES: &str = "\
Examples:
  hikyaku cp run7.tar example.org:/data/      put a file
  hikyaku cp -r example.org:run7 .            get a directory
  hikyaku cp -rp run7/ me@example.org:/data/  keep times and modes
  hikyaku cp 'example.org:run7/*.dat' .       the far side matches the pattern
  hikyaku cp -l 300m big.iso example.org:     at most 300 Mbit/s
  hikyaku cp --json-lines -r run7 example.org:
      events for a program, as they happen
  hikyaku cp -r hikyaku://node1,node2/run7 .
      from daemons (hikyaku serve), all of them at once
  hikyaku cp -r run8 hikyaku://node1,node2/
      to daemons (hikyaku serve --writable), each gets a part
  hikyaku cp -r gfarm:///run7 .
      from a Gfarm file system, all nodes that have it at once
  hikyaku cp -r run8 gfarm:///archive/        into it, spread over its nodes
  hikyaku cp -r s3://bucket/run7 .
      from a bucket (a build with the feature s3), --endpoint URL for MinIO
  hikyaku cp --bootstrap run7.tar far:
      copy hikyaku itself to far first, if it has none
  hikyaku cp --unfinished
      what interrupted copies have left here

The far side needs ssh and hikyaku, nothing else: no daemon, no open TCP port,
no configuration. The data go over UDP, encrypted; where UDP is blocked they
go over several TCP connections, or through ssh if these are blocked too, and
you are told so. Where the far side has no hikyaku, it may be copied there
(--bootstrap; at a terminal you are asked). Without it, or where the far side
admits SFTP only, they go by SFTP. --via auto|udp|tcp|ssh|native|sftp says
which of these may be used.

A file gets its name when it is whole, verified and on the disk; until then it
is called .NAME.TOKEN.hikyaku beside it. After an interruption the same
command goes on where it stopped.";
