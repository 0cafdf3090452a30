//! The text of `help`.

/// All commands, a line each.
pub(crate) const TEXT: &str = "\
Commands:
bye, exit, quit                    End
cd [DIR]                           Go to a directory of the server; without DIR to the first one
chgrp [-h] GROUP PATH              Set the group, a number; -h of a link itself
chmod [-h] MODE PATH               Set the mode, an octal number
chown [-h] OWNER PATH              Set the owner, a number
copy OLD NEW, cp OLD NEW           Copy a file within the server
df [-hi] [PATH]                    Print the space of a file system; -h with units, -i inodes
get [-afpR] REMOTE [LOCAL]         Fetch: -a resume, -f wait for the disk, -p keep times and modes,
                                   -R directories too
help, ?                            Print this text
lcd [DIR]                          Go to a directory of this machine; without DIR home
lls [OPTIONS] [PATH]               List files of this machine
lmkdir DIR                         Make a directory on this machine
ln [-s] OLD NEW                    Make a hard link; -s a symbolic one
lpwd                               Print the directory of this machine
ls [-1afhlnrSt] [PATH]             List files of the server
lumask MASK                        Set the umask of this machine, an octal number
mkdir DIR                          Make a directory on the server
progress                           Show the progress of transfers, or do not
put [-afpR] LOCAL [REMOTE]         Send; flags as of get
pwd                                Print the directory of the server
reget [-fpR] REMOTE [LOCAL]        get -a
rename [-l] OLD NEW                Rename; -l fails if NEW is there
reput [-fpR] LOCAL [REMOTE]        put -a
rm PATH                            Remove files
rmdir DIR                          Remove an empty directory
symlink OLD NEW                    ln -s
version                            Print the version of SFTP
!COMMAND                           Run a command on this machine
!                                  Run a shell on this machine
PATHs may be patterns (*, ?, [...]). A line that begins with - may fail in a batch.
";
