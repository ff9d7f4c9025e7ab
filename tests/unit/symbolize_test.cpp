#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tools/symbolize.h"

using namespace relock;

namespace {

constexpr std::uint32_t kFunctionLine = __LINE__ + 1;
__attribute__((noinline)) int function_with_a_line(int value) { return value * 3 + 1; }

int counters_of_the_test[16];

// This program's own load bias.
std::uint64_t own_bias() {
  std::uint64_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<std::uint64_t*>(result) = info->dlpi_addr;
        return 1;  // the first one is the program
      },
      &bias);
  return bias;
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace

TEST_CASE("symbols: an address of this program has its function, file and line") {
  const ModuleFiles files;
  Symbolizer symbolizer(files);
  const ModuleId own{own_path(), ""};
  const auto address = reinterpret_cast<std::uint64_t>(&function_with_a_line) - own_bias();
  const std::vector<CodeName> names = symbolizer.code(own, address);
  REQUIRE_FALSE(names.empty());
  CHECK(names.back().name == "(anonymous namespace)::function_with_a_line(int)");
  CHECK(names.back().file.find("symbolize_test.cpp") != std::string::npos);
  CHECK(names.back().line == kFunctionLine);
  CHECK_FALSE(names.back().inlined);
  CHECK(symbolizer.has_lines(own));
  CHECK(symbolizer.missing().empty());
  counters_of_the_test[3] = function_with_a_line(1);
  const auto data = reinterpret_cast<std::uint64_t>(&counters_of_the_test[3]) - own_bias();
  CHECK(symbolizer.data(own, data).name == "(anonymous namespace)::counters_of_the_test");
  CHECK(symbolizer.data(own, data).offset == 12);
  CHECK(symbolizer.code(own, 1).empty());
  CHECK(symbolizer.data(own, ~std::uint64_t{0}).name.empty());
}

TEST_CASE("symbols: whatever path a profile names, there is a reason or a name, and no waiting") {
  char place[] = "/tmp/relock-unit.XXXXXX";
  REQUIRE(mkdtemp(place) != nullptr);
  const std::string pipe = std::string(place) + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const ModuleFiles files;
  Symbolizer symbolizer(files);
  const std::string paths[] = {
      pipe, place, "/dev/zero", "/proc/kmsg", "/proc/self/mem", "/nowhere/lib.so", "/etc/passwd"};
  for (const std::string& path : paths) {
    INFO(path);
    CHECK(symbolizer.code({path, ""}, 0x1000).empty());
    CHECK(symbolizer.data({path, ""}, 0x1000).name.empty());
    CHECK_FALSE(symbolizer.has_lines({path, ""}));
  }
  CHECK(symbolizer.missing().size() == std::size(paths));
  CHECK(symbolizer.missing().back().reason == "not a program or library");
  symbolizer.code({own_path(), "0123456789abcdef"}, 0x1000);
  CHECK(symbolizer.missing().back().reason == "not the file that ran");
  symbolizer.code({"[vdso]", ""}, 0x10);
  CHECK(symbolizer.missing().size() == std::size(paths) + 1);  // it has no file to miss
  unlink(pipe.c_str());
  rmdir(place);
}
