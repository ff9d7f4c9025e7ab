#include <zlib.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include "tests/unit/report_support.h"
#include "tools/demangle.h"
#include "tools/report_folded.h"
#include "tools/report_json.h"
#include "tools/report_pprof.h"

using namespace relock;
using namespace relock::profile;
using nlohmann::json;

namespace {

struct Server {
  ProfileBuilder builder;
  TestNames names;

  explicit Server(const std::string& function = "wait here") {
    builder.module(0, 0x1000, 0x9000, "/usr/bin/server");
    builder.module(1, 0x10000, 0x20000, "/lib/libc.so.6");
    std::strcpy(builder.header()->exe, "/usr/bin/server");
    builder.header()->start_realtime_ns = 1700000000000000000;
    builder.header()->start_monotonic_ns = 1000;
    builder.header()->last_monotonic_ns = 51000;
    auto* module = builder.table<ModuleRow>(kSectionModules);
    module->build_id_bytes = 2;
    module->build_id[0] = 0xab;
    module->build_id[1] = 0xcd;
    names.objects[0x7000] = "lock";
    names.function(0x1010, function, "/src/a.cpp", 12);
    names.inlined(0x1010, "inner", "/src/a.h", 3);
    names.function(0x1020, "hold", "/src/a.cpp", 20);
    const std::uint32_t waiter = builder.stack({0x1010, 0x10050});
    builder.wait(builder.lock(0x7000), waiter, builder.stack({0x1020}), 30000);
    builder.wait(builder.lock(0x7000), waiter, 0, 10000);
    builder.wait(builder.lock(0x7100, RELOCK_KIND_COND), waiter, 0, 500);
  }
  Report report() { return report_of(builder, names); }
};

// One field of a message, decoded as far as a test needs it.
struct Field {
  std::uint32_t tag;
  std::uint64_t number;
  std::string bytes;
};
std::vector<Field> fields(const std::string& message) {
  std::vector<Field> result;
  protozero::pbf_reader reader(message);
  while (reader.next()) {
    Field field{reader.tag(), 0, ""};
    if (reader.wire_type() == protozero::pbf_wire_type::varint) {
      field.number = reader.get_uint64();
    } else {
      field.bytes = reader.get_string();
    }
    result.push_back(field);
  }
  return result;
}
std::vector<Field> fields(const std::string& message, std::uint32_t tag) {
  std::vector<Field> result = fields(message);
  std::erase_if(result, [tag](const Field& field) { return field.tag != tag; });
  return result;
}
std::vector<std::uint64_t> packed(const std::string& bytes) {
  std::vector<std::uint64_t> result;
  const char* at = bytes.data();
  while (at < bytes.data() + bytes.size()) {
    result.push_back(protozero::decode_varint(&at, bytes.data() + bytes.size()));
  }
  return result;
}

}  // namespace

TEST_CASE("json: the document says what it is, and its parts add up") {
  Server server;
  const json report = json::parse(json_text(report_json(server.report()), true));
  CHECK(report["schema"] == "relock-report");
  CHECK(report["version"] == 1);
  CHECK(report["by"] == "lock");
  CHECK(report["processes"][0]["duration_ns"] == 50000);
  CHECK(report["processes"][0]["file"] == "file0.prof");
  REQUIRE(report["locks"].size() == 1);
  REQUIRE(report["conditions"].size() == 1);
  const json& lock = report["locks"][0];
  CHECK(lock["name"] == "lock (server)");
  CHECK(lock["kind"] == "mutex");
  CHECK(lock["wait_ns"] == 40000);
  CHECK(lock["max_wait_ns"] == 30000);
  CHECK(lock["histogram"].size() == 40);
  for (const char* side : {"waiters", "blockers", "pairs"}) {
    std::uint64_t ns = 0;
    std::uint64_t waits = 0;
    for (const json& share : lock[side]) {
      ns += share["ns"].get<std::uint64_t>();
      waits += share["waits"].get<std::uint64_t>();
    }
    CHECK(ns == 40000);
    CHECK(waits == 2);
  }
  CHECK(lock["pairs"][1]["blocker"].is_null());
  const json& stack = report["stacks"][lock["waiters"][0]["stack"].get<std::size_t>()];
  const json& inner = report["frames"][stack[0].get<std::size_t>()];
  CHECK(inner["name"] == "inner");
  CHECK(inner["inlined"] == true);
  CHECK(inner["file"] == "/src/a.h");
  CHECK(inner["line"] == 3);
  const json& libc = report["frames"][stack[2].get<std::size_t>()];
  CHECK(libc["name"] == "libc.so.6+0x10050");
  CHECK(libc["address"] == "0x10050");
  CHECK(libc["file"].is_null());
  CHECK(report["totals"]["share_lost"].is_null());
  CHECK(report["totals"]["average_waiters"] == 0.8);
  CHECK(report["dropped"]["locks"] == 0);
  CHECK(report["missing_modules"].empty());
}

TEST_CASE("json: names with anything in them make valid JSON of valid UTF-8") {
  Server server("evil\"\\\n\x01\xff</script>\xed\xa0\x80");
  std::memset(server.builder.header()->command_line, '\xfe', 100);
  const std::string text = json_text(report_json(server.report()), false);
  CHECK(valid_utf8(text) == text);
  const json report = json::parse(text);
  const std::string name = report["frames"][1]["name"];
  CHECK(name.substr(0, 7) == "evil\"\\\n");
  CHECK(text.find('\n') == std::string::npos);
}

TEST_CASE("folded: outermost first, nanoseconds, both sides, conditions apart") {
  Server server;
  const Report report = server.report();
  CHECK(report_folded(report, {}) == "libc.so.6+0x10050;wait here;inner 40000\n");
  CHECK(report_folded(report, {true, false}) == "[no stack] 10000\nhold 30000\n");
  CHECK(report_folded(report, {false, true}) == "libc.so.6+0x10050;wait here;inner 500\n");
}

TEST_CASE("folded: no name breaks the lines or the frames") {
  Server server(" a;b\nc 12\r\t ");
  CHECK(report_folded(server.report(), {}) == "libc.so.6+0x10050;a:b c 12;inner 40000\n");
}

TEST_CASE("pprof: what a mutex profile has, with inlined lines and build ids") {
  Server server;
  const std::string message = report_pprof(server.report(), {});
  std::vector<std::string> strings;
  for (const Field& field : fields(message, 6)) strings.push_back(field.bytes);
  REQUIRE_FALSE(strings.empty());
  CHECK(strings[0].empty());
  const auto text = [&](std::uint64_t index) { return strings.at(index); };

  const std::vector<Field> types = fields(message, 1);
  REQUIRE(types.size() == 2);
  CHECK(text(fields(types[0].bytes)[0].number) == "contentions");
  CHECK(text(fields(types[0].bytes)[1].number) == "count");
  CHECK(text(fields(types[1].bytes)[0].number) == "delay");
  CHECK(text(fields(types[1].bytes)[1].number) == "nanoseconds");
  CHECK(text(fields(fields(message, 11)[0].bytes)[0].number) == "contentions");
  CHECK(fields(message, 12)[0].number == 1);
  CHECK(fields(message, 9)[0].number == 1700000000000000000);
  CHECK(fields(message, 10)[0].number == 50000);

  const std::vector<Field> mappings = fields(message, 3);
  REQUIRE(mappings.size() == 2);
  CHECK(text(fields(mappings[0].bytes, 5)[0].number) == "/usr/bin/server");
  CHECK(text(fields(mappings[0].bytes, 6)[0].number) == "abcd");
  CHECK(fields(mappings[0].bytes, 2)[0].number == 0x1000);

  const std::vector<Field> samples = fields(message, 2);
  REQUIRE(samples.size() == 1);
  CHECK(packed(fields(samples[0].bytes, 1)[0].bytes).size() == 2);
  CHECK(packed(fields(samples[0].bytes, 2)[0].bytes) == std::vector<std::uint64_t>{2, 40000});
  const std::vector<Field> locations = fields(message, 4);
  REQUIRE(locations.size() == 2);
  CHECK(fields(locations[0].bytes, 3)[0].number == 0x1010);
  const std::vector<Field> lines = fields(locations[0].bytes, 4);
  REQUIRE(lines.size() == 2);
  CHECK(fields(lines[0].bytes, 2)[0].number == 3);
  CHECK(fields(lines[1].bytes, 2)[0].number == 12);
  CHECK(fields(locations[1].bytes, 4).empty());  // no name: the reader may look for one

  const std::string blockers = report_pprof(server.report(), {true, false});
  CHECK(fields(blockers, 2).size() == 2);
}

TEST_CASE("pprof: compressed, it comes back as it was") {
  Server server;
  const std::string message = report_pprof(server.report(), {});
  const std::string packed_message = gzipped(message);
  CHECK(packed_message.substr(0, 2) == "\x1f\x8b");
  std::string back(message.size() + 100, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed_message.data()));
  stream.avail_in = static_cast<uInt>(packed_message.size());
  stream.next_out = reinterpret_cast<Bytef*>(back.data());
  stream.avail_out = static_cast<uInt>(back.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  back.resize(stream.total_out);
  inflateEnd(&stream);
  CHECK(back == message);
}
