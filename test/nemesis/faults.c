/* Preloaded into peers: adds an offset to the wall clock and a delay to fsync, both read from a shared file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct faults {
  int64_t clock_offset_ms;
  int64_t fsync_ms;
};

static const struct faults none;
static const volatile struct faults *faults = &none;

__attribute__((constructor)) static void map_faults(void) {
  const char *path = getenv("ADMB_FAULTS");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *mapped = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped != MAP_FAILED) faults = mapped;
  close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    int64_t ms = faults->clock_offset_ms;
    time->tv_sec += ms / 1000;
    time->tv_nsec += ms % 1000 * 1000000;
    if (time->tv_nsec < 0) { time->tv_nsec += 1000000000; time->tv_sec--; }
    if (time->tv_nsec >= 1000000000) { time->tv_nsec -= 1000000000; time->tv_sec++; }
  }
  return (int)result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

static void delay(void) {
  int64_t ms = faults->fsync_ms;
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  while (ms > 0 && nanosleep(&left, &left) != 0 && errno == EINTR) {}
}

int fsync(int fd) {
  delay();
  return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
  delay();
  return (int)syscall(SYS_fdatasync, fd);
}
