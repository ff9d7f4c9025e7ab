#include "tools/report_json.h"

#include <array>
#include <nlohmann/json.hpp>

#include "tools/lock_names.h"

namespace relock {

using Json = nlohmann::ordered_json;

namespace {

Json index_or_null(std::uint32_t index) { return index == kNone ? Json() : Json(index); }
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json number_or_null(const std::optional<std::uint64_t>& number) {
  return number.has_value() ? Json(*number) : Json();
}
double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

Json process_json(const ReportProcess& process) {
  return {{"file", process.file},
          {"comm", process.comm},
          {"exe", process.exe},
          {"command", process.command},
          {"pid", process.pid},
          {"start_unix_ns", process.start_unix_ns},
          {"duration_ns", process.duration_ns},
          {"finished", process.finished},
          {"mutex", process.mutex},
          {"spin", process.spin},
          {"rwlock", process.rwlock},
          {"wait", process.wait},
          {"samples_per_s", process.samples_per_s},
          {"stacks_wanted", process.stacks_wanted},
          {"samples", process.samples},
          {"waits_unsampled", process.waits_unsampled},
          {"stacks_taken", process.stacks_taken},
          {"thread_ns", number_or_null(process.thread_ns)},
          {"threads", number_or_null(process.threads)},
          {"waiting_threads", process.waiting_threads},
          {"filtered", process.filtered},
          {"stacks_refused", process.stacks_refused}};
}

Json totals_json(const ReportTotals& totals) {
  Json json = {{"wait_ns", totals.wait_ns},
               {"waits", totals.waits},
               {"acquisitions", totals.acquisitions},
               {"condition_wait_ns", totals.condition_wait_ns},
               {"condition_waits", totals.condition_waits},
               {"duration_ns", totals.duration_ns},
               {"thread_ns", number_or_null(totals.thread_ns)},
               {"share_lost", nullptr},
               {"average_waiters", nullptr},
               {"locks", totals.locks},
               {"conditions", totals.conditions}};
  if (totals.thread_ns.value_or(0) != 0) {
    json["share_lost"] = ratio(totals.wait_ns, *totals.thread_ns);
  }
  if (totals.duration_ns != 0) json["average_waiters"] = ratio(totals.wait_ns, totals.duration_ns);
  return json;
}

Json stack_shares(const std::vector<StackShare>& shares) {
  Json json = Json::array();
  for (const StackShare& share : shares) {
    json.push_back({{"stack", index_or_null(share.stack)},
                    {"ns", share.ns},
                    {"waits", share.waits},
                    {"samples", share.samples}});
  }
  return json;
}

Json pair_shares(const std::vector<PairShare>& pairs) {
  Json json = Json::array();
  for (const PairShare& pair : pairs) {
    json.push_back({{"waiter", index_or_null(pair.waiter)},
                    {"blocker", index_or_null(pair.blocker)},
                    {"ns", pair.ns},
                    {"waits", pair.waits},
                    {"samples", pair.samples}});
  }
  return json;
}

Json hold_json(const ReportLock& lock) {
  const std::optional<HoldTimes>& hold = lock.hold;
  if (!hold.has_value()) return nullptr;
  return {{"samples", hold->samples},
          {"total_ns", hold->total_ns},
          {"max_ns", hold->max_ns},
          {"mean_ns", mean_hold_ns(lock)},
          {"held_ns", scaled(mean_hold_ns(lock), lock.acquisitions, 1)},
          {"histogram", hold->histogram}};
}

Json hand_offs_json(const std::optional<HandOffs>& hand_offs) {
  if (!hand_offs.has_value()) return nullptr;
  return {{"within", hand_offs->within}, {"across", hand_offs->across}};
}

const char* named_by_word(NamedBy named_by) {
  constexpr std::array kWords = {"symbol", "init", "wait", "address"};
  return kWords[static_cast<std::size_t>(named_by)];
}

Json lock_json(const Report& report, const ReportLock& lock) {
  return {{"id", lock.id},
          {"name", lock.name},
          {"named_by", named_by_word(lock.named_by)},
          {"place", text_or_null(lock.place)},
          {"address", text_or_null(lock.address)},
          {"kind", kind_name(lock.kind)},
          {"exact", lock.exact},
          {"objects", lock.objects},
          {"acquisitions", lock.acquisitions},
          {"waits", lock.waits},
          {"wait_ns", lock.wait_ns},
          {"max_wait_ns", lock.max_wait_ns},
          {"timeouts", lock.timeouts},
          {"cancelled", lock.cancelled},
          {"try_failures", lock.try_failures},
          {"under_way", lock.under_way},
          {"histogram", lock.exact ? Json(lock.histogram) : Json::array()},
          {"hold", hold_json(lock)},
          {"hand_offs", hand_offs_json(lock.hand_offs)},
          {"samples", lock.samples},
          {"waiters", stack_shares(waiters_of(report, lock))},
          {"blockers", stack_shares(blockers_of(report, lock))},
          {"pairs", pair_shares(pairs_of(report, lock))}};
}

Json locks_json(const Report& report, const std::vector<ReportLock>& locks) {
  Json json = Json::array();
  for (const ReportLock& lock : locks) json.push_back(lock_json(report, lock));
  return json;
}

Json frame_json(const Report& report, const Frame& frame) {
  const bool in_module = frame.module != kNone;
  return {{"name", frame.name},
          {"symbol", text_or_null(frame.symbol)},
          {"module", in_module ? Json(report.modules[frame.module].id.path) : Json()},
          {"address", hex(frame.address)},
          {"file", text_or_null(frame.file)},
          {"line", frame.line},
          {"inlined", frame.inlined}};
}

Json dropped_json(const Report& report) {
  Json json = Json::object();
  for (std::uint32_t i = 0; i < report.dropped.size(); ++i) {
    if (drop_key(i) != nullptr) json[drop_key(i)] = report.dropped[i];
  }
  return json;
}

Json missing_json(const Report& report) {
  Json json = Json::array();
  for (const MissingModule& module : report.missing_modules) {
    json.push_back({{"path", module.id.path},
                    {"build_id", text_or_null(module.id.build_id)},
                    {"reason", module.reason}});
  }
  return json;
}

const char* by_word(GroupBy by) {
  return by == GroupBy::kLock ? "lock" : by == GroupBy::kInit ? "init" : "site";
}

}  // namespace

Json report_json(const Report& report) {
  Json json = {{"schema", "relock-report"},
               {"version", kReportJsonVersion},
               {"by", by_word(report.by)},
               {"processes", Json::array()},
               {"differences", report.differences},
               {"totals", totals_json(report.totals)},
               {"locks", locks_json(report, report.locks)},
               {"conditions", locks_json(report, report.conditions)},
               {"stacks", report.stacks},
               {"frames", Json::array()},
               {"dropped", dropped_json(report)},
               {"missing_modules", missing_json(report)},
               {"modules_without_lines", report.modules_without_lines}};
  for (const ReportProcess& process : report.processes) {
    json["processes"].push_back(process_json(process));
  }
  for (const Frame& frame : report.frames) json["frames"].push_back(frame_json(report, frame));
  return json;
}

std::string json_text(const Json& value, bool indented) {
  return value.dump(indented ? 2 : -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace relock
