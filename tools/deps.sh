#!/bin/bash
# deps.sh PACKAGE... - installs Debian packages for `make deps`: as root, else through sudo, else it
# names them.
#
# Nothing that the machine's owner has installed is removed for it. Debian's libunwind-dev, for one,
# excludes LLVM's libunwind-14-dev and libc++-14-dev with it: a package whose installation would
# remove others is unpacked into .deps/ instead, where the Makefile looks for headers.
set -eu
cd "$(dirname "$(readlink -f "$0")")/.."
[ $# -gt 0 ] || exit 0

as=()
if [ "$(id -u)" != 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "relock: these packages are missing and only root can install them: apt-get install $*" >&2
    exit 1
  fi
  as=(sudo -n)
fi
get() { "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 "$@"; }

get update >/dev/null
removes() { get -s install --no-install-recommends "$@" | grep -q '^Remv '; }
install=() unpack=()
if ! removes "$@"; then
  install=("$@")
else
  for package; do
    if ! removes "$package"; then
      install+=("$package")
      continue
    fi
    unpack+=("$package")
    mapfile -t needs < <(apt-cache depends --no-recommends --no-suggests --no-conflicts \
      --no-breaks --no-replaces --no-enhances "$package" | sed -n 's/^ *Depends: \([^<]*\)$/\1/p')
    install+=("${needs[@]}")
  done
fi
if [ ${#install[@]} -gt 0 ]; then
  echo "installing ${install[*]}"
  get install -y --no-install-recommends --no-remove "${install[@]}" </dev/null >/dev/null
fi
if [ ${#unpack[@]} -gt 0 ]; then
  echo "unpacking into .deps, since installing would remove other packages: ${unpack[*]}"
  mkdir -p .deps
  cd .deps
  apt-get -q -o APT::Sandbox::User="$(id -un)" download "${unpack[@]}" >/dev/null
  for file in *.deb; do dpkg-deb -x "$file" . && rm "$file"; done
  # The libraries themselves are installed; the links to them were unpacked.
  find . -xtype l | while read -r link; do
    ln -sf "/${link#./}$(readlink "$link")" "$link"
  done
fi
