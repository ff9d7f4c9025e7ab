#include "tools/report_pprof.h"

#include <zlib.h>

#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <stdexcept>
#include <tuple>

namespace relock {

namespace {

// The numbers of the fields in profile.proto.
enum ProfileField {
  kSampleType = 1,
  kSample,
  kMapping,
  kLocation,
  kFunction,
  kStringTable,
  kTimeNanos = 9,
  kDurationNanos,
  kPeriodType,
  kPeriod,
  kComment,
  kDefaultSampleType
};
enum ValueTypeField { kType = 1, kUnit };
enum SampleField { kLocationId = 1, kValue, kLabel };
enum LabelField { kKey = 1, kStr };
enum MappingField {
  kMappingId = 1,
  kMemoryStart,
  kMemoryLimit,
  kFilename = 5,
  kBuildId,
  kHasFunctions,
  kHasFilenames,
  kHasLineNumbers,
  kHasInlineFrames
};
enum LocationField { kLocationNumber = 1, kLocationMapping, kAddress, kLine };
enum LineField { kFunctionId = 1, kLineNumber };
enum FunctionField { kFunctionNumber = 1, kName, kSystemName, kFunctionFile, kStartLine };

// profile.proto counts with signs.
std::int64_t as_signed(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
}

class PprofWriter {
 public:
  PprofWriter(const Report& report, const FlameOptions& options)
      : report_(report), options_(options), out_(data_) {}

  std::string data() {
    write_types();
    write_mappings();
    for (const ReportLock& lock : options_.conditions ? report_.conditions : report_.locks) {
      write_samples(lock);
    }
    write_facts();
    for (const std::string* text : in_order_) out_.add_string(kStringTable, *text);
    return std::move(data_);
  }

 private:
  using FunctionKey = std::tuple<std::string, std::string, std::string, std::uint32_t>;

  std::int64_t string(const std::string& text) {
    const auto next = static_cast<std::int64_t>(strings_.size());
    const auto [place, is_new] = strings_.emplace(text, next);
    if (is_new) in_order_.push_back(&place->first);
    return place->second;
  }

  void write_type(ProfileField field, const char* type, const char* unit) {
    protozero::pbf_writer message(out_, field);
    message.add_int64(kType, string(type));
    message.add_int64(kUnit, string(unit));
  }

  void write_types() {
    string("");  // index 0, by definition
    write_type(kSampleType, "contentions", "count");
    write_type(kSampleType, "delay", "nanoseconds");
    write_type(kPeriodType, "contentions", "count");
    out_.add_int64(kPeriod, 1);
    out_.add_int64(kDefaultSampleType, string("delay"));
  }

  // The program itself comes first, by convention.
  void write_mappings() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < report_.modules.size(); ++i) order.push_back(i);
    std::stable_partition(order.begin(), order.end(),
                          [this](std::uint32_t i) { return report_.modules[i].is_program; });
    mapping_ids_.resize(order.size());
    std::vector<bool> has_lines(order.size());
    std::vector<bool> has_inlines(order.size());
    for (const Frame& frame : report_.frames) {
      if (frame.module == kNone) continue;
      if (frame.line != 0) has_lines[frame.module] = true;
      if (frame.inlined) has_inlines[frame.module] = true;
    }
    for (const std::uint32_t number : order) {
      const ReportModule& module = report_.modules[number];
      mapping_ids_[number] = ++mappings_;
      const std::int64_t filename = string(module.id.path);
      const std::int64_t build_id = string(module.id.build_id);
      protozero::pbf_writer message(out_, kMapping);
      message.add_uint64(kMappingId, mappings_);
      message.add_uint64(kMemoryStart, module.start);
      message.add_uint64(kMemoryLimit, module.end);
      message.add_int64(kFilename, filename);
      message.add_int64(kBuildId, build_id);
      message.add_bool(kHasFunctions, module.has_names);
      message.add_bool(kHasFilenames, has_lines[number]);
      message.add_bool(kHasLineNumbers, has_lines[number]);
      message.add_bool(kHasInlineFrames, has_inlines[number]);
    }
  }

  std::uint64_t function(const Frame& frame) {
    const std::string& system_name = frame.symbol.empty() ? frame.name : frame.symbol;
    const auto next = static_cast<std::uint64_t>(functions_.size()) + 1;
    const FunctionKey key(frame.name, system_name, frame.file, frame.start_line);
    const auto [place, is_new] = functions_.emplace(key, next);
    if (!is_new) return place->second;
    const std::int64_t name = string(frame.name);
    const std::int64_t system = string(system_name);
    const std::int64_t file = string(frame.file);
    protozero::pbf_writer message(out_, kFunction);
    message.add_uint64(kFunctionNumber, next);
    message.add_int64(kName, name);
    message.add_int64(kSystemName, system);
    message.add_int64(kFunctionFile, file);
    message.add_int64(kStartLine, frame.start_line);
    return next;
  }

  // One address: a function and before it those that are inlined into it. An address without a
  // name gets no line, so that the reader may look for one itself.
  std::uint64_t location(const std::vector<std::uint32_t>& frames) {
    const auto next = static_cast<std::uint64_t>(locations_.size()) + 1;
    const auto [place, is_new] = locations_.emplace(frames, next);
    if (!is_new) return place->second;
    const Frame& outer = report_.frames[frames.back()];
    std::vector<std::uint64_t> ids;
    for (const std::uint32_t number : frames) {
      if (report_.frames[number].named) ids.push_back(function(report_.frames[number]));
    }
    protozero::pbf_writer message(out_, kLocation);
    message.add_uint64(kLocationNumber, next);
    std::uint64_t address = outer.address;
    if (outer.module != kNone) {
      message.add_uint64(kLocationMapping, mapping_ids_[outer.module]);
      address += report_.modules[outer.module].load_bias;
    }
    message.add_uint64(kAddress, address);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      protozero::pbf_writer line(message, kLine);
      line.add_uint64(kFunctionId, ids[i]);
      line.add_int64(kLineNumber, report_.frames[frames[i]].line);
    }
    return next;
  }

  std::uint64_t unknown_location() {
    const auto next = static_cast<std::uint64_t>(locations_.size()) + 1;
    const auto [place, is_new] = locations_.emplace(std::vector<std::uint32_t>{}, next);
    if (!is_new) return place->second;
    Frame frame;
    frame.name = "[no stack]";
    const std::uint64_t id = function(frame);
    protozero::pbf_writer message(out_, kLocation);
    message.add_uint64(kLocationNumber, next);
    protozero::pbf_writer line(message, kLine);
    line.add_uint64(kFunctionId, id);
    return next;
  }

  std::vector<std::uint64_t> locations(std::uint32_t stack) {
    std::vector<std::uint64_t> ids;
    if (stack == kNone) return {unknown_location()};
    std::vector<std::uint32_t> here;
    for (const std::uint32_t number : report_.stacks[stack]) {
      here.push_back(number);
      if (report_.frames[number].inlined) continue;
      ids.push_back(location(here));
      here.clear();
    }
    if (!here.empty()) ids.push_back(location(here));
    return ids;
  }

  void write_samples(const ReportLock& lock) {
    std::map<std::uint32_t, StackShare> by_stack;
    for (const PairShare& pair : lock.pairs) {
      StackShare& sum = by_stack[options_.blockers ? pair.blocker : pair.waiter];
      sum.ns = add_up(sum.ns, pair.ns);
      sum.waits = add_up(sum.waits, pair.waits);
    }
    for (const auto& [stack, share] : by_stack) {
      const std::vector<std::uint64_t> ids = locations(stack);
      const std::int64_t values[] = {as_signed(share.waits), as_signed(share.ns)};
      const std::pair<std::int64_t, std::int64_t> labels[] = {
          {string("lock"), string(lock.name)}, {string("kind"), string(kind_name(lock.kind))}};
      protozero::pbf_writer message(out_, kSample);
      message.add_packed_uint64(kLocationId, ids.begin(), ids.end());
      message.add_packed_int64(kValue, std::begin(values), std::end(values));
      for (const auto& [key, value] : labels) {
        protozero::pbf_writer label(message, kLabel);
        label.add_int64(kKey, key);
        label.add_int64(kStr, value);
      }
    }
  }

  void write_facts() {
    std::uint64_t start = UINT64_MAX;
    for (const ReportProcess& process : report_.processes) {
      start = std::min(start, process.start_unix_ns);
      const std::string text = process.comm + "[" + std::to_string(process.pid) +
                               "]: " + (process.command.empty() ? process.exe : process.command);
      out_.add_int64(kComment, string(text));
    }
    if (!report_.processes.empty()) out_.add_int64(kTimeNanos, as_signed(start));
    out_.add_int64(kDurationNanos, as_signed(report_.totals.duration_ns));
  }

  const Report& report_;
  FlameOptions options_;
  std::string data_;
  protozero::pbf_writer out_;
  std::map<std::string, std::int64_t> strings_;
  std::vector<const std::string*> in_order_;
  std::map<FunctionKey, std::uint64_t> functions_;
  std::map<std::vector<std::uint32_t>, std::uint64_t> locations_;  // by their frames
  std::vector<std::uint64_t> mapping_ids_;                         // by module
  std::uint64_t mappings_ = 0;
};

}  // namespace

std::string report_pprof(const Report& report, const FlameOptions& options) {
  return PprofWriter(report, options).data();
}

std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  constexpr int kGzip = 16;  // added to the size of the window
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib: no memory");
  }
  std::string result(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int done = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  if (done != Z_STREAM_END) throw std::runtime_error("zlib: compression failed");
  return result;
}

}  // namespace relock
