#!/bin/sh
# Copies hikyaku from the unpacked archive below a prefix; "--uninstall" removes it.
#   ./install.sh                     below /usr/local, as root
#   ./install.sh --prefix ~/.local   for one user, without root
set -eu
prefix=/usr/local
action=install
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) prefix=${2:?--prefix needs a directory}; shift ;;
        --uninstall) action=uninstall ;;
        *) echo "usage: $0 [--prefix DIR] [--uninstall]" >&2; exit 1 ;;
    esac
    shift
done
cd "$(dirname "$0")"
find bin sbin share ! -type d | while read -r file; do
    if [ "$action" = uninstall ]; then
        rm -f "$prefix/$file"
    else
        mkdir -p "$prefix/$(dirname "$file")"
        rm -f "$prefix/$file"
        cp -P "$file" "$prefix/$file"
    fi
done
if [ "$action" = install ]; then
    "$prefix/bin/hikyaku" --version
    case ":$PATH:" in
        *":$prefix/bin:"*) ;;
        *) echo "add $prefix/bin to PATH" ;;
    esac
fi
