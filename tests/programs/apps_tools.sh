# Parallel tools: many processes, short-lived threads, OpenMP; and programs with no lock to swap.
# Sourced by run_app.sh.

squash() { # MB UNPACK... -- PACK...
  local mb=$1 un=(); shift; while [ "$1" != -- ]; do un+=("$1"); shift; done; shift
  need "$1"; data in.txt "$mb"
  clock; P "$@" <in.txt >out.z 2>err.log || bad "pack exit $?: $(tail -1 err.log)"
  per_s "$mb" MB/s
  P "${un[@]}" <out.z >back.txt 2>err.log || bad "unpack exit $?: $(tail -1 err.log)"; same in.txt back.txt
}
app_pigz() { squash "$(n 64)" pigz -d -p 4 -- pigz -p 4 -b 32; }
app_zstd() { squash "$(n 128)" zstd -d -q -- zstd -q -T4 -3 --no-check -B524288; }
app_xz() { squash "$(n 8)" xz -d -T4 -c -- xz -T4 -1 --block-size=262144 -c; }
app_imagemagick() { # OpenMP
  need convert
  clock; MAGICK_THREAD_LIMIT=4 OMP_NUM_THREADS=4 P convert -size 600x600 plasma:red-blue -seed 1 -blur 0x4 -resize 900x900 -despeckle t.png >out.log 2>&1 || bad "exit $?: $(tail -1 out.log)"
  per_s 1 images/s
  [ "$(convert t.png -format '%wx%h' info:)" = 900x900 ] || bad "wrong size"
}
app_git() { # pack and grep threads
  need git; export HOME=$W GIT_CONFIG_NOSYSTEM=1; mkdir r; cd r
  git init -q . ; git config user.email a@b; git config user.name n; git config gc.auto 0
  awk -v n="$(n 700)" 'BEGIN{for(f=0;f<n;f++){p="f" f ".txt"; for(i=0;i<60;i++)print "line " i*f " of file " f > p; close(p)}}'
  git add . ; git commit -qm one; for f in f1*.txt; do echo more >>"$f"; done; git commit -qam two
  clock; P git repack -adfq --threads=4 --window=40 >../out.log 2>&1 || bad "repack exit $?: $(tail -1 ../out.log)"
  P git grep -c --threads=4 'line 12 ' HEAD~1 >../g.txt 2>../out.log || bad "grep exit $?"
  P git index-pack --threads=4 --strict -o ../i.idx .git/objects/pack/*.pack >../out.log 2>&1 || bad "index-pack exit $?: $(tail -1 ../out.log)"
  per_s "$(git count-objects -v | awk '/in-pack/{print $2}')" objects/s
  git fsck --full >../out.log 2>&1 || bad "fsck"; same ../i.idx "$(ls .git/objects/pack/*.idx)"; cd ..
}
app_build() { # fork-heavy: make -j4 of gcc processes, linked by mold's threads
  need make g++ mold; local i k; k=$(n 8); for ((i = 0; i < k; i++)); do printf '#include <cstdio>\nint f%d(int a){ std::printf("%%d\\n", a + %d); return a; }\n' $i $i >f$i.cpp; done
  { for ((i = 0; i < k; i++)); do echo "int f$i(int);"; done; echo 'int main(){'; for ((i = 0; i < k; i++)); do echo "f$i($i);"; done; echo '}'; } >m.cpp
  printf 'O=$(patsubst %%.cpp,%%.o,$(wildcard *.cpp))\nt: $(O)\n\tg++ -fuse-ld=mold -Wl,--threads -Wl,--thread-count=4 -static-libstdc++ -o t $(O)\n%%.o: %%.cpp\n\tg++ -O1 -c $<\n' >Makefile
  clock; P make -s -j4 >out.log 2>&1 || bad "exit $?: $(tail -1 out.log)"
  per_s "$k" files/s
  [ "$(./t | tail -1)" = $((2 * k - 2)) ] || bad "program's output"
}
app_static() { # static program and a Rust one without pthread locks
  need busybox rg; data in.txt 8
  clock; P busybox sha256sum in.txt >a.txt || bad "busybox exit $?"; sha256sum in.txt >b.txt; same a.txt b.txt
  [ "$(P rg -j4 -c '99$' in.txt)" = "$(grep -c '99$' in.txt)" ] || bad "rg count"
  per_s 1 runs/s
}

