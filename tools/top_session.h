// A look at one process over time: what is read when, and the frame that comes of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/symbolize.h"
#include "tools/top_model.h"
#include "tools/top_target.h"
#include "tools/top_view.h"

namespace relock {

class TopSession {
 public:
  TopSession(const ModuleFiles& files, std::uint64_t interval_ns)
      : names_(files), model_(names_), interval_ns_(interval_ns) {}

  // `argument` is a process ID or a file. Returns an empty string, or what is wrong with it.
  std::string open(const std::string& argument);
  // Reads the profile once more. What goes wrong stands in the frame, under the last good reading.
  void update();

  std::vector<TopLine> frame(std::size_t columns, std::size_t rows);
  // Acts on a key; false: quit. `page` is a screenful of rows.
  bool press(int key, std::size_t page);
  // Chooses another row; negative: upwards.
  void move(std::ptrdiff_t rows);

  TopView& view() { return view_; }
  std::uint64_t interval_ns() const { return interval_ns_; }
  bool ended() const { return view_.state == TopState::kEnded; }
  bool has_profile() const { return !target_.file().empty(); }

 private:
  std::string read();
  void change_interval(bool longer);
  void move_by_key(int key, std::ptrdiff_t page);
  void change_view(int key);
  void hold();  // or go on

  Symbolizer names_;
  TopTarget target_;
  TopModel model_;
  TopView view_;
  std::uint64_t interval_ns_;
  std::uint64_t last_event_ns_ = 0;  // of the profile, when it was read last
};

}  // namespace relock
