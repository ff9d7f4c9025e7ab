# relock is built by GNU Make alone, from this one file.
#
#   make            librelock.so, librelock-profile.so, relock, lockbench
#   make test       everything that is checked on each change; installs what is missing first
#   make test-slow  the same plus the long suites
#   make demo       a contended program, its hottest locks, the same under other locks
#   make bench      lockbench's grid, auto against glibc, in a quarter of an hour: table and plot
#   make bench-full the whole grid with every lock, about two hours
#   make bench-profile  what recording costs: profiling on against off
#   make deps       installs the Debian packages that a build or a test finds missing
#   make install    PREFIX=/usr/local DESTDIR=: command, libraries, manual page; make uninstall
#   make readme     the tables of locks and variables in README.md, from their .def files
#   make format     clang-format over every source;  make format-check only looks
#   make disasm     the instructions that an uncontended lock and unlock execute
#   make clean      removes $(BUILD)
#
# BUILD=dir builds elsewhere, for other flags: make BUILD=build-asan SANITIZE=address,undefined
# WERROR=1 makes warnings errors, V=1 shows whole commands. Sources are found by folder, so a
# new file needs no edit here.

BUILD ?= build
CC  = gcc
CXX = g++
SANITIZE ?=
WERROR ?=
V ?=
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all tests test test-slow demo bench bench-full bench-profile deps deps-test install uninstall \
  readme format format-check disasm clean
all:

# ---- flags ------------------------------------------------------------------------------

WARNINGS = -Wall -Wextra -Wshadow -Wpointer-arith -Wundef -Wvla -Wwrite-strings \
  $(if $(WERROR),-Werror)
CXX_WARNINGS = $(WARNINGS) -Wnon-virtual-dtor -Woverloaded-virtual
# Headers that `make deps` could only unpack.
UNPACKED := $(addprefix -isystem ,$(wildcard .deps/usr/include .deps/usr/include/*-linux-gnu))
DEPFLAGS = -MMD -MP -MF $(@:%.o=%.d)
BASE_FLAGS = -O2 -g -I. $(UNPACKED) -D_GNU_SOURCE $(if $(SANITIZE),-fsanitize=$(SANITIZE))
CXXFLAGS_COMMON = -std=c++20 $(BASE_FLAGS) $(CXX_WARNINGS)
CFLAGS_COMMON = -std=gnu17 $(BASE_FLAGS) $(WARNINGS)

# The interposer lives inside programs that nobody here wrote. It may bring no runtime library
# along, its thread-local data must need no call, and its functions must have unwind tables,
# since exceptions and cancellation pass through them.
PRELOAD_FLAGS = $(CXXFLAGS_COMMON) -fPIC -fno-exceptions -fno-rtti -fno-threadsafe-statics \
  -fvisibility=hidden -ftls-model=initial-exec -fno-stack-protector \
  -fasynchronous-unwind-tables -ffunction-sections -fdata-sections -fno-plt -fcf-protection=none \
  -DRELOCK_PRELOADED=1
PRELOAD_LINK = -shared -nodefaultlibs -Wl,-soname,librelock.so -Wl,-z,initfirst -Wl,-z,now \
  -Wl,-z,relro -Wl,-z,nodelete -Wl,-z,defs -Wl,-z,text -Wl,--as-needed -Wl,--gc-sections \
  -Wl,--hash-style=gnu

# The recorder is ordinary C++, but nothing in it may be shared with the program's own copies of
# the same libraries: everything is hidden, and inline statics are not made unique per process.
LOG_FLAGS = -DSPDLOG_FMT_EXTERNAL -DFMT_HEADER_ONLY
PROFILE_FLAGS = $(CXXFLAGS_COMMON) $(LOG_FLAGS) -fPIC -fvisibility=hidden \
  -fvisibility-inlines-hidden -fno-gnu-unique -ffunction-sections
# libgcc_s first: _Unwind_* must never be bound to libunwind's functions of the same names. The
# recorder opens libunwind by itself, so that it is in nobody's search order.
PROFILE_LINK = -shared -Wl,-soname,librelock-profile.so -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete \
  -Wl,-z,defs -Wl,--gc-sections -Wl,--no-as-needed -lgcc_s -Wl,--as-needed

TOOL_FLAGS = $(CXXFLAGS_COMMON)
TOOL_LIBS = -ldw -lelf -lz -liberty -lncursesw -ltinfo -pthread
BENCH_CXXFLAGS = $(CXXFLAGS_COMMON) -fno-exceptions -fno-rtti -fno-threadsafe-statics
TEST_FLAGS = $(CXXFLAGS_COMMON) $(LOG_FLAGS)
# Damaged profiles are read under these; gcc's for make test, clang's with libFuzzer.
FUZZ_FLAGS = $(filter-out -fsanitize=%,$(TEST_FLAGS)) -O1 -fsanitize=address,undefined \
  -fno-sanitize-recover=all
FUZZER_CXX = clang++
TSAN_FLAGS = $(filter-out -fsanitize=%,$(TEST_FLAGS)) -O1 -fsanitize=thread

# A line for a command: what is made, or all of it with V=1.
run = $(if $(V),,@echo "  $(1) $(patsubst $(BUILD)/%,%,$(2))"; )

# ---- sources ----------------------------------------------------------------------------

POLICY_SRC  := $(wildcard policy/*.cpp)
PRELOAD_SRC := $(wildcard interpose/*.cpp)
PROFILE_SRC := $(wildcard interpose/profile/*.cpp)
TOOL_SRC    := $(filter-out tools/lockbench% tools/gen_%,$(wildcard tools/*.cpp))
BENCH_SRC   := $(wildcard tools/lockbench*.cpp tools/lockbench*.c)
GEN_SRC     := $(wildcard tools/gen_*.cpp)
UNIT_SRC    := $(filter-out tests/unit/main.cpp,$(wildcard tests/unit/*.cpp))
EXPLORE_SRC := $(wildcard tests/explore/*.cpp)
TSAN_SRC    := $(wildcard tests/tsan/*.cpp)
FUZZ_SRC    := tools/embedded.cpp tests/fuzz/profile_input.cpp tests/fuzz/profile_check.cpp \
  $(filter-out %_cmd.cpp,$(wildcard tools/report_*.cpp tools/diff_*.cpp)) \
  $(addprefix tools/,profile_reader.cpp lock_names.cpp lock_wrappers.cpp demangle.cpp \
    text_format.cpp module_files.cpp embedded.cpp)
CONF_C      := $(filter-out tests/conformance/lib_%,$(wildcard tests/conformance/*.c))
CONF_CXX    := $(filter-out tests/conformance/lib_%,$(wildcard tests/conformance/*.cpp))
CONF_LIB    := $(wildcard tests/conformance/lib_*.c tests/conformance/lib_*.cpp)
SYMBOLS     := interpose/symbols.def

objects = $(patsubst %,$(BUILD)/obj/$(1)/%.o,$(basename $(2)))
PRELOAD_OBJ := $(call objects,preload,$(PRELOAD_SRC) $(POLICY_SRC))
PROFILE_OBJ := $(call objects,profile,$(PROFILE_SRC))
POLICY_OBJ  := $(call objects,plain,$(POLICY_SRC))
TOOL_OBJ    := $(call objects,plain,$(TOOL_SRC))
BENCH_OBJ   := $(call objects,bench,$(BENCH_SRC))
GEN_OBJ     := $(call objects,plain,$(GEN_SRC))
UNIT_OBJ    := $(call objects,test,$(UNIT_SRC))
EXPLORE_OBJ := $(call objects,test,$(EXPLORE_SRC))
TSAN_OBJ    := $(call objects,tsan,$(TSAN_SRC))
FUZZ_OBJ    := $(call objects,fuzz,$(FUZZ_SRC))
OBJ := $(PRELOAD_OBJ) $(PROFILE_OBJ) $(POLICY_OBJ) $(TOOL_OBJ) $(BENCH_OBJ) $(GEN_OBJ) \
  $(UNIT_OBJ) $(EXPLORE_OBJ) $(TSAN_OBJ) $(FUZZ_OBJ) $(BUILD)/obj/fuzz/tests/fuzz/replay.o \
  $(BUILD)/obj/test/tests/unit/main.o \
  $(BUILD)/obj/tsan/tests/unit/main.o

PRODUCTS := $(if $(and $(PRELOAD_SRC),$(wildcard $(SYMBOLS))),$(BUILD)/librelock.so) \
  $(if $(PROFILE_SRC),$(BUILD)/librelock-profile.so) \
  $(if $(wildcard tools/main.cpp),$(BUILD)/relock) \
  $(if $(BENCH_SRC),$(BUILD)/lockbench)
GENERATORS := $(patsubst tools/%.cpp,$(BUILD)/%,$(GEN_SRC))
CONF_LIBS  := $(patsubst tests/%,$(BUILD)/%.so,$(basename $(CONF_LIB)))
CONF_PROGS := $(patsubst tests/%,$(BUILD)/%,$(basename $(CONF_C) $(CONF_CXX)))
TESTS := $(if $(UNIT_SRC),$(BUILD)/unit_tests) $(if $(EXPLORE_SRC),$(BUILD)/explore_tests) \
  $(if $(TSAN_SRC),$(BUILD)/tsan_tests) $(CONF_LIBS) $(CONF_PROGS) $(GENERATORS) \
  $(BUILD)/profile_replay

# ---- packages ---------------------------------------------------------------------------

# One run of the preprocessor names each Debian package whose header it cannot find.
HEADERS = libunwind.h:libunwind-dev spdlog/spdlog.h:libspdlog-dev fmt/format.h:libfmt-dev \
  catch2/catch.hpp:catch2 CLI/CLI.hpp:libcli11-dev nlohmann/json.hpp:nlohmann-json3-dev \
  curses.h:libncurses-dev elfutils/libdwfl.h:libdw-dev libelf.h:libelf-dev libiberty/demangle.h:libiberty-dev \
  protozero/pbf_writer.hpp:libprotozero-dev zlib.h:zlib1g-dev
probe = $(foreach h,$(HEADERS),\n\043if !__has_include(<$(firstword $(subst :, ,$(h)))>)\n$(lastword $(subst :, ,$(h)))\n\043endif\n)
missing_build = $(shell if command -v $(CXX) >/dev/null; \
  then printf '$(probe)' | $(CXX) $(UNPACKED) -E -P -x c++ -; \
  else echo g++ $(foreach h,$(HEADERS),$(lastword $(subst :, ,$(h)))); fi)

# Programs that the tests and the demo run, as command:package; a path stands for a library.
MACHINE_LIB := /usr/lib/$(shell $(CC) -print-multiarch 2>/dev/null)
PROGRAMS = objdump:binutils go:golang-go clang++:clang sysbench:sysbench ruby:ruby python3:python3 pigz:pigz zstd:zstd \
  tchmttest:tokyocabinet-bin kchashtest:kyotocabinet-utils cache_bench:rocksdb-tools git:git \
  mandoc:mandoc man:man-db \
  /usr/lib/debug/.build-id:libc6-dbg /usr/lib/python3/dist-packages/pyte/__init__.py:python3-pyte \
  redis-server:redis-server redis-benchmark:redis-tools stress-ng:stress-ng \
  $(MACHINE_LIB)/libjemalloc.so.2:libjemalloc2 $(MACHINE_LIB)/libtcmalloc_minimal.so.4:libtcmalloc-minimal4
# Inside a function make 4.3 hands an escaped \# to the shell as it stands.
hash := \#
missing_tests = $(shell for p in $(PROGRAMS); do \
  [ -e "$${p%:*}" ] || command -v "$${p%:*}" >/dev/null || echo "$${p$(hash)*:}"; done)

deps:
	@tools/deps.sh $(sort $(missing_build))
deps-test:
	@tools/deps.sh $(sort $(missing_build) $(missing_tests))

# A build without its headers fails once, in one line, instead of in every source.
ifneq ($(if $(MAKECMDGOALS),$(filter all tests bench bench-full disasm install $(BUILD)/%,$(MAKECMDGOALS)),all),)
MISSING := $(strip $(missing_build))
ifneq ($(MISSING),)
$(error missing packages: $(MISSING) (make deps installs them))
endif
endif

# ---- products ---------------------------------------------------------------------------

all: $(PRODUCTS)
tests: $(PRODUCTS) $(TESTS)

# symbols.def is the one list of what is interposed; whatever is not in it stays local.
$(BUILD)/librelock.map: $(SYMBOLS)
	@mkdir -p $(@D)
	@sed -n 's/^ *RELOCK_[A-Z_]*SYMBOL[A-Z_]*(\([A-Za-z_0-9]*\).*/    \1;/p' $< | sort -u | \
	  { echo '{'; echo '  global:'; cat; echo '  local: *;'; echo '};'; } >$@
$(BUILD)/librelock-profile.map:
	@mkdir -p $(@D)
	@echo '{ global: relock_profiler_entry; local: *; };' >$@

$(BUILD)/librelock.so: $(PRELOAD_OBJ) $(BUILD)/librelock.map
	$(call run,LINK,$@)$(CC) $(PRELOAD_LINK) -Wl,--version-script=$(BUILD)/librelock.map -o $@ $(PRELOAD_OBJ) -lc -lgcc
$(BUILD)/librelock-profile.so: $(PROFILE_OBJ) $(BUILD)/librelock-profile.map
	$(call run,LINK,$@)$(CXX) $(PROFILE_OBJ) $(PROFILE_LINK) -Wl,--version-script=$(BUILD)/librelock-profile.map -o $@
$(BUILD)/relock: $(TOOL_OBJ) $(POLICY_OBJ)
	$(call run,LINK,$@)$(CXX) $(BASE_FLAGS) -o $@ $^ $(TOOL_LIBS)
$(BUILD)/lockbench: $(BENCH_OBJ)
	$(call run,LINK,$@)$(CC) $(BASE_FLAGS) -o $@ $^ -pthread
# The manual page is the command's own account of itself.
$(BUILD)/relock.1: $(BUILD)/relock
	$(call run,MAN,$@)$< --man >$@
$(GENERATORS): $(BUILD)/%: $(BUILD)/obj/plain/tools/%.o $(POLICY_OBJ)
	$(call run,LINK,$@)$(CXX) $(BASE_FLAGS) -o $@ $^ -pthread

# Catch's main sits in an archive, so that a test binary with a main of its own does not get it.
CATCH = $(BUILD)/obj/test/catch.a
$(BUILD)/obj/%/catch.a: $(BUILD)/obj/%/tests/unit/main.o
	@rm -f $@ && ar rcs $@ $<
# The recorder's objects too: a test pulls in those it names.
$(BUILD)/obj/profile.a: $(PROFILE_OBJ)
	@mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^
$(BUILD)/unit_tests: $(UNIT_OBJ) $(filter-out %/tools/main.o,$(TOOL_OBJ)) $(POLICY_OBJ) $(CATCH) \
  $(BUILD)/obj/profile.a
	$(call run,LINK,$@)$(CXX) $(BASE_FLAGS) -o $@ $^ $(TOOL_LIBS)
$(BUILD)/explore_tests: $(EXPLORE_OBJ) $(POLICY_OBJ) $(CATCH)
	$(call run,LINK,$@)$(CXX) $(BASE_FLAGS) -o $@ $^ -pthread
$(BUILD)/tsan_tests: $(TSAN_OBJ) $(BUILD)/obj/tsan/catch.a
	$(call run,LINK,$@)$(CXX) -g -fsanitize=thread -o $@ $^ -pthread

# The recorder's own tables write the valid profile that the changes start from.
$(BUILD)/profile_replay: $(FUZZ_OBJ) $(BUILD)/obj/fuzz/tests/fuzz/replay.o $(BUILD)/obj/profile.a
	$(call run,LINK,$@)$(CXX) -g -fsanitize=address,undefined -o $@ $^ $(TOOL_LIBS)
$(BUILD)/profile_fuzzer: $(FUZZ_SRC) tests/fuzz/fuzzer.cpp $(BUILD)/obj/profile.a
	$(call run,LINK,$@)$(FUZZER_CXX) -std=c++20 -O1 -g -I. $(UNPACKED) -D_GNU_SOURCE $(LOG_FLAGS) \
	  -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o $@ $^ $(TOOL_LIBS)

# A conformance program is one plain source; a line "// build: FLAGS" in it adds flags.
conf_flags = $(shell sed -n 's,^// build: ,,p' $<)
CONF_LINK = -L$(BUILD)/conformance -Wl,-rpath,'$$ORIGIN' -pthread
CONF_CFLAGS = -O2 -g -D_GNU_SOURCE $(WARNINGS) -MMD -MP -MF $@.d
CONF_CXXFLAGS = -std=c++20 $(CONF_CFLAGS) $(LOG_FLAGS)
define conformance_rules
$(BUILD)/conformance/lib_%.so: tests/conformance/lib_%.c
	@mkdir -p $$(@D)
	$$(call run,LINK,$$@)$$(CC) $$(CONF_CFLAGS) -fPIC -shared -o $$@ $$< $$(conf_flags) -pthread
$(BUILD)/conformance/lib_%.so: tests/conformance/lib_%.cpp
	@mkdir -p $$(@D)
	$$(call run,LINK,$$@)$$(CXX) $$(CONF_CXXFLAGS) -fPIC -shared -o $$@ $$< $$(conf_flags) -pthread
$(patsubst tests/%.c,$(BUILD)/%,$(CONF_C)): $(BUILD)/%: tests/%.c | $(CONF_LIBS)
	@mkdir -p $$(@D)
	$$(call run,LINK,$$@)$$(CC) $$(CONF_CFLAGS) -o $$@ $$< $$(CONF_LINK) $$(conf_flags)
$(patsubst tests/%.cpp,$(BUILD)/%,$(CONF_CXX)): $(BUILD)/%: tests/%.cpp | $(CONF_LIBS)
	@mkdir -p $$(@D)
	$$(call run,LINK,$$@)$$(CXX) $$(CONF_CXXFLAGS) -o $$@ $$< $$(CONF_LINK) $$(conf_flags)
endef
$(eval $(conformance_rules))

# ---- objects ----------------------------------------------------------------------------

$(BUILD)/obj/preload/%.o: %.cpp
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(CXX) $(PRELOAD_FLAGS) $(DEPFLAGS) -c -o $@ $<
$(BUILD)/obj/profile/%.o: %.cpp
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(CXX) $(PROFILE_FLAGS) $(DEPFLAGS) -c -o $@ $<
$(BUILD)/obj/plain/%.o: %.cpp
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(CXX) $(TOOL_FLAGS) $(DEPFLAGS) -c -o $@ $<
$(BUILD)/obj/bench/%.o: %.cpp
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(CXX) $(BENCH_CXXFLAGS) $(DEPFLAGS) -c -o $@ $<
$(BUILD)/obj/bench/%.o: %.c
	@mkdir -p $(@D)
	$(call run,CC,$@)$(CC) $(CFLAGS_COMMON) $(DEPFLAGS) -c -o $@ $<
$(BUILD)/obj/test/%.o: %.cpp
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(CXX) $(TEST_FLAGS) $(DEPFLAGS) -c -o $@ $<
$(BUILD)/obj/fuzz/%.o: %.cpp
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(CXX) $(FUZZ_FLAGS) $(DEPFLAGS) -c -o $@ $<
$(BUILD)/obj/tsan/%.o: %.cpp
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(CXX) $(TSAN_FLAGS) $(DEPFLAGS) -c -o $@ $<

# The assembler puts these into an object, unseen by -MMD.
$(BUILD)/obj/plain/tools/embedded.o: $(wildcard tools/embedded/*)

-include $(OBJ:.o=.d) $(addsuffix .d,$(CONF_PROGS) $(CONF_LIBS))

# ---- tests and the rest -----------------------------------------------------------------

# A make of its own after the packages are there, on all CPUs unless -j was given.
build = @$(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
test: deps-test
	$(build) tests BUILD=$(BUILD)
	@BUILD=$(BUILD) tests/run_suites.sh
test-slow: deps-test
	$(build) tests BUILD=$(BUILD)
	@BUILD=$(BUILD) SLOW=1 tests/run_suites.sh
demo: deps-test
	$(build) all BUILD=$(BUILD)
	@BUILD=$(BUILD) tests/programs/demo.sh
bench: $(BUILD)/lockbench $(BUILD)/librelock.so
	@BUILD=$(BUILD) tools/bench.sh --grid
bench-full: $(BUILD)/lockbench $(BUILD)/librelock.so
	@BUILD=$(BUILD) tools/bench.sh --grid --full
bench-profile: $(BUILD)/lockbench $(BUILD)/librelock.so $(BUILD)/librelock-profile.so
	@tools/profile_cost.py --build $(BUILD)
disasm: $(BUILD)/librelock.so
	@BUILD=$(BUILD) tests/build/fast_path.sh --listing

# ---- installation -----------------------------------------------------------------------

# relock finds its library from where it itself lies, so the tree may be staged and moved. A
# distribution sets LIBDIR to its own, as in /usr/lib/x86_64-linux-gnu.
PREFIX ?= /usr/local
DESTDIR ?=
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
INSTALLED = $(BINDIR)/relock $(LIBDIR)/relock/librelock.so \
  $(LIBDIR)/relock/librelock-profile.so $(MANDIR)/man1/relock.1
install: all $(BUILD)/relock.1
	@for file in $(INSTALLED); do \
	  case $$file in *.1) mode=644;; *) mode=755;; esac; \
	  install -D -m $$mode "$(BUILD)/$${file##*/}" "$(DESTDIR)$$file" || exit 1; \
	  echo "  INSTALL $(DESTDIR)$$file"; \
	done
uninstall:
	rm -f $(addprefix "$(DESTDIR)",$(INSTALLED))
	@[ ! -d "$(DESTDIR)$(LIBDIR)/relock" ] || \
	  rmdir --ignore-fail-on-non-empty "$(DESTDIR)$(LIBDIR)/relock"

# ---- upkeep -----------------------------------------------------------------------------

FORMATTED = $(shell find locks policy interpose tools tests -name '*.cpp' -o -name '*.h' \
  -o -name '*.c' 2>/dev/null)
readme: $(BUILD)/gen_readme
	$(BUILD)/gen_readme <README.md >$(BUILD)/README.md && cat $(BUILD)/README.md >README.md
format:
	clang-format -i $(FORMATTED)
format-check:
	clang-format --dry-run -Werror $(FORMATTED)
clean:
	rm -rf $(BUILD)
