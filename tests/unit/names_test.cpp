#include <catch2/catch.hpp>

#include "tools/demangle.h"
#include "tools/lock_wrappers.h"
#include "tools/text_format.h"

using namespace relock;

TEST_CASE("C++ and Rust names are shown as they were written") {
  CHECK(demangled("_ZN4bank8transferEi") == "bank::transfer(int)");
  CHECK(demangled("_ZN12_GLOBAL__N_14workEPv") == "(anonymous namespace)::work(void*)");
  CHECK(demangled("_ZN4bank4moveEv.cold") == "bank::move() [clone .cold]");
  CHECK(demangled("_RNvCs1234_7mycrate3foo") == "mycrate::foo");
  CHECK(demangled("_RNvMs_NtCs1234_5store5cacheNtB4_5Cache3get") == "<store::cache::Cache>::get");
  CHECK(demangled("_ZN5store5cache3get17h0123456789abcdefE") == "store::cache::get");
  CHECK(demangled("_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$..$u7b$$u7b$"
                  "closure$u7d$$u7d$$GT$17h0123456789abcdefE") ==
        "core::ptr::drop_in_place<std::rt::lang_start<()>::{{closure}}>");
}

TEST_CASE("names that are not mangled, or not quite, stay as they are") {
  CHECK(demangled("main") == "main");
  CHECK(demangled("m") == "m");
  CHECK(demangled("_Znonsense") == "_Znonsense");
  CHECK(demangled("_R") == "_R");
  CHECK(demangled("") == "");
  const std::string endless = "_ZN" + std::string(100000, '1');
  CHECK(demangled(endless.c_str()) == endless);
}

TEST_CASE("what is no UTF-8 is replaced, byte by byte, and the rest is kept") {
  const std::string bad = "\xef\xbf\xbd";
  CHECK(valid_utf8("plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\x92") ==
        "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\x92");
  CHECK(valid_utf8("a\xff z") == "a" + bad + " z");
  CHECK(valid_utf8("\xc3") == bad);                      // cut short
  CHECK(valid_utf8("\xe2\x82") == bad + bad);            // cut short
  CHECK(valid_utf8("\xc0\xaf") == bad + bad);            // longer than needed
  CHECK(valid_utf8("\xed\xa0\x80") == bad + bad + bad);  // half a pair of UTF-16
  CHECK(valid_utf8("\xf4\x90\x80\x80") == bad + bad + bad + bad);
}

TEST_CASE("functions that only wrap a lock are told from those that use one") {
  for (const char* wrapper :
       {"rocksdb::port::Mutex::Lock()", "rocksdb::port::Mutex::Unlock()", "std::mutex::lock()",
        "std::lock_guard<std::mutex>::lock_guard(std::mutex&)", "__gthread_mutex_lock",
        "MutexLock::MutexLock(Mutex*)", "MutexLock::~MutexLock()", "bank::Guard::~Guard()",
        "g_mutex_lock", "inline_mysql_mutex_lock", "PyThread_acquire_lock_timed", "ReadLock",
        "try_lock_shared", "bool std::condition_variable::wait_until<long>(int)",
        "pthread_mutex_lock"}) {
    INFO(wrapper);
    CHECK(is_lock_wrapper(wrapper));
  }
  for (const char* user :
       {"transfer", "main", "LRUCacheShard::Release(rocksdb::Handle*)", "read_block", "Deadlock",
        "lockbench::(anonymous namespace)::worker_main(void*)", "Cache<std::mutex>::find(int)",
        "clock", "unlock_accounts(int)", "(anonymous namespace)", "", "~", "()", "<"}) {
    INFO(user);
    CHECK_FALSE(is_lock_wrapper(user));
  }
}

TEST_CASE("parameters are left out of names that are too long") {
  CHECK(without_parameters("a::find(int, char) const") == "a::find(...)");
  CHECK(without_parameters("a::operator()(int) [clone .cold]") == "a::operator()(...)");
  CHECK(without_parameters("void f<int (*)(char)>(long)") == "void f<int (*)(char)>(...)");
  CHECK(without_parameters("a::find()") == "a::find()");
  CHECK(without_parameters("(anonymous namespace)::counter") == "(anonymous namespace)::counter");
  CHECK(without_parameters("accounts_lock (server)") == "accounts_lock (server)");
  CHECK(without_parameters("main") == "main");
}

TEST_CASE("a terminal gets no control characters and no more columns than it has") {
  CHECK(printable("a\x1b[31m\nb", 100) == "a?[31m?b");
  CHECK(printable("\xc2\x9b\xe2\x80\xae\xe2\x80\xa8.", 100) == "???.");
  CHECK(printable("abcdefgh", 8) == "abcdefgh");
  CHECK(printable("abcdefghi", 8) == "abcde...");
  CHECK(printable("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 4) == "\xc3\xa4...");
  CHECK(printable("\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", 5) == "\xe4\xb8\xad...");
  CHECK(printable_end("abcdefghi", 8) == "...efghi");
  CHECK(printable_end("abcdefgh", 8) == "abcdefgh");
  for (std::size_t columns = 0; columns < 12; ++columns) {
    CHECK(columns_of(printable("\xe4\xb8\xad mixed \xc3\xa4 text", columns)) <= columns);
    CHECK(columns_of(printable_end("\xe4\xb8\xad mixed \xc3\xa4 text", columns)) <= columns);
  }
}
