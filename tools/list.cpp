// `relock list`: the locks and the variables, straight from their tables.

#include "tools/list.h"

#include <cstdio>
#include <cstring>

#include "policy/options.h"

namespace relock {

namespace {

void list_locks() {
  printf("locks (for RELOCK_LOCK, RELOCK_MUTEX, RELOCK_SPIN; * serves by default)\n");
  for (int i = 0; i < kLockCount; ++i) {
    const LockKind kind = static_cast<LockKind>(i);
    const LockRow& row = lock_row(kind);
    printf("%c %-14s fair: %-8s %s\n", kind == kDefaultLock ? '*' : ' ', row.name, row.fair,
           row.idea);
  }
}

void list_variables() {
  const char* group = "";
  for (int i = 0; i < option_count(); ++i) {
    const OptionRow& row = option_row(i);
    if (strcmp(group, row.group) != 0) {
      group = row.group;
      printf("\n%s\n", group);
    }
    LineBuffer initial;
    LineBuffer accepted;
    describe_default(row, &initial);
    describe_accepted(row, &accepted);
    printf("  %-22s %s\n", row.name, row.help);
    printf("  %-22s default: %s; accepted: %s\n", "", initial.data, accepted.data);
  }
}

}  // namespace

int list_command() {
  list_locks();
  list_variables();
  return fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace relock
