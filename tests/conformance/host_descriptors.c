// A program that closes every descriptor it does not know, as daemons do, and then gets the same
// numbers for its own data files. While its threads contend, nobody else may write into them, move
// their positions or close them.
// conformance: any-lock
#include "check.h"
#include "cond_support.h"
#include "hammer.h"

#include <sys/stat.h>

enum { kFiles = 24, kRecords = 60, kRecordBytes = 64, kFirst = 3, kLast = 1023 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int files[kFiles];
static int written[kFiles];  // under the mutex
static int failures;         // under the mutex

static void open_files(void) {
  for (int i = 0; i < kFiles; ++i) {
    char path[] = "/tmp/descriptors.XXXXXX";
    files[i] = mkstemp(path);
    MUST(files[i] >= 0);
    unlink(path);
  }
}

static void record_text(int file, int number, char* text) {
  memset(text, 'a' + file, kRecordBytes);
  snprintf(text, kRecordBytes, "file %d record %d", file, number);
  text[kRecordBytes - 1] = '\n';
}

static void* write_records(void* argument) {
  int me = (int)(intptr_t)argument;
  char text[kRecordBytes];
  for (int i = 0; i < kFiles * kRecords / 4; ++i) {
    pthread_mutex_lock(&mutex);
    int file = (i + me * 7) % kFiles;
    while (written[file] == kRecords) file = (file + 1) % kFiles;
    record_text(file, written[file]++, text);
    failures += write(files[file], text, kRecordBytes) != kRecordBytes;
    pthread_cond_signal(&cond);
    if (i % 8 == 0) {
      struct timespec soon = deadline_ms(CLOCK_REALTIME, 1);
      pthread_cond_timedwait(&cond, &mutex, &soon);
    }
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

static int file_is_right(int file) {
  struct stat info;
  if (fstat(files[file], &info) != 0 || info.st_size != kRecords * kRecordBytes) return 0;
  if (lseek(files[file], 0, SEEK_CUR) != info.st_size) return 0;
  char expected[kRecordBytes];
  char text[kRecordBytes];
  for (int i = 0; i < kRecords; ++i) {
    record_text(file, i, expected);
    if (pread(files[file], text, kRecordBytes, (off_t)i * kRecordBytes) != kRecordBytes) return 0;
    if (memcmp(text, expected, kRecordBytes) != 0) return 0;
  }
  return 1;
}

static void write_and_look(const char* name) {
  pthread_t threads[4];
  memset(written, 0, sizeof written);
  open_files();
  for (int i = 0; i < 4; ++i) {
    pthread_create(&threads[i], NULL, write_records, (void*)(intptr_t)i);
  }
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  int right = 0;
  for (int i = 0; i < kFiles; ++i) right += file_is_right(i);
  CHECK_EQ(name, right, kFiles);
}

static void close_all(void) {
  for (int i = kFirst; i <= kLast; ++i) close(i);
}

int main(void) {
  CHECK_TRUE("contended before", tally(&mutex, 4, 3000));
  close_all();
  write_and_look("files intact");
  CHECK_EQ("the first number is free for the program", files[0], kFirst);
  close_all();
  CHECK_TRUE("contended between", tally(&mutex, 4, 3000));
  write_and_look("files intact with the numbers used again");
  pid_t child = fork();
  if (child == 0) {
    close_all();
    write_and_look("files of a child intact");
    _exit(done());
  }
  CHECK_EQ("child's status", child_status(child), 0);
  int right = 0;
  for (int i = 0; i < kFiles; ++i) right += file_is_right(i);
  CHECK_EQ("still intact at the end", right, kFiles);
  CHECK_EQ("failed writes", failures, 0);
  return done();
}
