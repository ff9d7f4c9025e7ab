// Text in fixed buffers, for code that may not allocate. What does not fit is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace relock::profile {

template <std::size_t N>
class Text {
 public:
  Text& operator<<(const char* text) { return append(text, std::strlen(text)); }
  Text& operator<<(std::uint64_t number) {
    char digits[20];
    std::size_t count = 0;
    do {
      digits[count++] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }
  Text& hex(std::uint64_t number) {
    int shift = 60;
    while (shift > 0 && number >> shift == 0) shift -= 4;
    *this << "0x";
    for (; shift >= 0; shift -= 4) put("0123456789abcdef"[number >> shift & 15]);
    return *this;
  }
  Text& append(const char* text, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) put(text[i]);
    return *this;
  }
  void put(char c) {
    if (length_ + 1 < N) data_[length_++] = c;
    data_[length_] = '\0';
  }
  void pad_to(std::size_t column) {
    while (length_ < column && length_ + 1 < N) put(' ');
  }
  void clear() { data_[length_ = 0] = '\0'; }
  void cut(std::size_t length) {
    if (length < length_) data_[length_ = length] = '\0';
  }
  const char* c_str() const { return data_; }
  std::size_t size() const { return length_; }

 private:
  char data_[N] = "";
  std::size_t length_ = 0;
};

// Copies a string into an array of a profile row; the array stays terminated.
template <std::size_t N>
inline void copy_text(char (&target)[N], const char* source) {
  const std::size_t length = strnlen(source, N - 1);
  std::memcpy(target, source, length);
  target[length] = '\0';
}

}  // namespace relock::profile
