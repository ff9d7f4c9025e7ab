#!/bin/bash
# relock check on real programs and on some made up here: one sentence each, and the exit status.
. "$(dirname "$(readlink -f "$0")")/common.sh" "$@"

verdict() { # NAME PROGRAM STATUS PATTERN
  try "$RELOCK" check "$2"
  expect_match "check: $1" "$code:$(lines_in "$out"):$out:$err" "$3:1:$2: $4:"
}
error() { # NAME PROGRAM PATTERN
  try "$RELOCK" check "$2"
  expect_match "check: $1" "$code:$out:$err" "2::relock: error: $2: $3"
}

compile locks <<'EOC'
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int main(void) { pthread_mutex_lock(&m); return pthread_mutex_unlock(&m); }
EOC
echo 'int main(void) { return 0; }' | compile none
echo '#include <dlfcn.h>
int main(int c, char** v) { return c > 1 && dlopen(v[1], 1) == 0; }' | compile opens

verdict "a program with locks" "$scratch/locks" 0 "relock can work on it"
verdict "python3" $PYTHON 0 "relock can work on it"
PATH=$scratch:$PATH verdict "a program from PATH" locks 0 "relock can work on it"
verdict "no locks" "$scratch/none" 1 "neither it nor its libraries import a pthread lock"
verdict "no locks in /bin/true" /bin/true 1 "neither it nor its libraries import a pthread lock"
verdict "no locks, but dlopen" "$scratch/opens" 1 "neither*, though it may open libraries that do"

# Static programs, of both shapes.
echo 'int main(void) { return 0; }' | compile static -static
verdict "statically linked" "$scratch/static" 1 "statically linked, *"
echo 'int main(void) { return 0; }' | compile static_pie -static-pie
verdict "statically linked, position independent" "$scratch/static_pie" 1 "statically linked, *"
echo '__attribute__((section(".go.buildinfo"), used)) static const char info[] = "Go";
int main(void) { return 0; }' | compile go -static
verdict "a Go program" "$scratch/go" 1 "a statically linked Go program; *"
if command -v busybox >/dev/null && ! ldd "$(command -v busybox)" >/dev/null 2>&1; then
  verdict "busybox-static" busybox 1 "statically linked, *"
fi

# More rights than its user.
cp "$scratch/locks" "$scratch/suid" && chmod u+s "$scratch/suid"
verdict "setuid" "$scratch/suid" 1 "setuid, *"
cp "$scratch/locks" "$scratch/sgid" && chmod g+s "$scratch/sgid"
verdict "setgid" "$scratch/sgid" 1 "setgid, *"
[ -u /usr/bin/passwd ] && verdict "passwd" /usr/bin/passwd 1 "setuid, *"
cp "$scratch/locks" "$scratch/caps"
if $PYTHON -c "import os,sys; os.setxattr(sys.argv[1], 'security.capability',
    bytes.fromhex('0100000200040000000000000000000000000000'))" "$scratch/caps" 2>/dev/null; then
  verdict "capabilities" "$scratch/caps" 1 "given capabilities, *"
else
  echo "  no right to give a file capabilities here: not looked at"
fi

# Another architecture: the same file with another e_machine; another class.
cp "$scratch/locks" "$scratch/riscv"
printf '\xf3\x00' | dd of="$scratch/riscv" bs=1 seek=18 conv=notrunc status=none
verdict "another architecture" "$scratch/riscv" 1 "built for another architecture (RISC-V)"
cp "$scratch/locks" "$scratch/i386"
printf '\x03\x00' | dd of="$scratch/i386" bs=1 seek=18 conv=notrunc status=none
printf '\x01' | dd of="$scratch/i386" bs=1 seek=4 conv=notrunc status=none
verdict "32-bit x86" "$scratch/i386" 1 "built for another architecture (32-bit x86)"

# Another C library.
echo 'int main(void) { return 0; }' |
  compile musl -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1
verdict "musl" "$scratch/musl" 1 "linked against musl; *"

# Sanitizers, as a library and linked in.
echo 'int main(void) { return 0; }' | compile asan -fsanitize=address 2>/dev/null &&
  verdict "AddressSanitizer" "$scratch/asan" 1 "built with AddressSanitizer, *"
echo 'int main(void) { return 0; }' | compile tsan -fsanitize=thread 2>/dev/null &&
  verdict "ThreadSanitizer" "$scratch/tsan" 1 "built with ThreadSanitizer, *"
echo 'int main(void) { return 0; }' | compile tsan_in -fsanitize=thread -static-libtsan \
  2>/dev/null && verdict "ThreadSanitizer linked in" "$scratch/tsan_in" 1 \
  "built with ThreadSanitizer, *"

# Locks that only a library uses, found in each of the places where libraries are looked for.
mkdir "$scratch/lib"
echo '#include <pthread.h>
static pthread_mutex_t m; int use_lock(void) { return pthread_mutex_lock(&m); }' |
  compile lib/libuses.so -shared -fPIC
echo 'int use_lock(void); int between(void) { return use_lock(); }' |
  compile lib/libbetween.so -shared -fPIC -L"$scratch/lib" -luses
user() { # NAME FLAGS...: a program that reaches the lock through two libraries
  local name=$1
  shift
  echo 'int between(void); int main(void) { return between(); }' |
    compile "$name" -L"$scratch/lib" -Wl,-rpath-link,"$scratch/lib" -lbetween "$@"
}
user rpath -Wl,--disable-new-dtags '-Wl,-rpath,$ORIGIN/lib'
verdict "locks in a library's library, RPATH" "$scratch/rpath" 0 "relock can work on it"
user runpath -Wl,--enable-new-dtags '-Wl,-rpath,${ORIGIN}/lib'
verdict "RUNPATH does not reach a library's library" "$scratch/runpath" 1 "neither *"
user plain
verdict "libraries that are nowhere" "$scratch/plain" 1 "neither *"
LD_LIBRARY_PATH=$scratch/lib verdict "LD_LIBRARY_PATH" "$scratch/plain" 0 "relock can work on it"

# Scripts.
printf '#!/bin/sh\nexit 0\n' >"$scratch/script.sh" && chmod +x "$scratch/script.sh"
verdict "a shell script" "$scratch/script.sh" 1 "a script for /bin/sh: neither *"
printf '#!/usr/bin/env locks\n' >"$scratch/through" && chmod +x "$scratch/through"
PATH=$scratch:$PATH verdict "a script through env" "$scratch/through" 0 \
  "a script for $scratch/locks: relock can work on it"

verdict "a library" "$(gcc -print-file-name=libelf.so.1)" 1 "a shared library, not a program"
for size in 10 100 1000 9000; do
  head -c $size "$scratch/locks" >"$scratch/cut" && chmod +x "$scratch/cut"
  verdict "a program cut off after $size bytes" "$scratch/cut" 1 "a damaged or incomplete ELF file"
done
error "nothing of that name" "$scratch/nothing" "no such program"
error "a directory" "$scratch" "not a file"
cp "$scratch/locks" "$scratch/plain" && chmod 644 "$scratch/plain"
error "a program that may not be executed" "$scratch/plain" "not an executable file"
exit $status
