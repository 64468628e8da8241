/* Faults of a disk and of a clock for the tests: a library that is preloaded (LD_PRELOAD) into the real binary.
 *
 * SHIM_CONTROL names a file that is read before each call, so a test switches faults on and off while the
 * process runs. SHIM_PATH is the beginning of the paths whose writes may fail; other files are left alone.
 * Each line of the control file is one fault:
 *
 *   write enospc | write eio     writing, growing and allocating fails
 *   sync enospc | sync eio       fsync and fdatasync fail
 *   slow MILLISECONDS            fsync and fdatasync take this much longer
 *   clock SECONDS                the wall clock is ahead by this much, or behind if the number is negative
 *
 * An empty or missing file means no fault.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct faults {
    int write_error;
    int sync_error;
    long slow_ms;
    long clock_secs;
};

static int error_named(const char *name) {
    return strncmp(name, "enospc", 6) == 0 ? ENOSPC : EIO;
}

static struct faults read_faults(void) {
    struct faults faults = {0, 0, 0, 0};
    const char *path = getenv("SHIM_CONTROL");
    if (path == NULL) return faults;
    int kept = errno;
    /* Plain system calls: the functions of the C library with these names may be the ones below. */
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        char text[256];
        long length = syscall(SYS_read, file, text, sizeof text - 1);
        syscall(SYS_close, file);
        text[length > 0 ? length : 0] = '\0';
        for (char *line = text; line != NULL && *line != '\0';) {
            if (strncmp(line, "write ", 6) == 0) faults.write_error = error_named(line + 6);
            if (strncmp(line, "sync ", 5) == 0) faults.sync_error = error_named(line + 5);
            if (strncmp(line, "slow ", 5) == 0) faults.slow_ms = strtol(line + 5, NULL, 10);
            if (strncmp(line, "clock ", 6) == 0) faults.clock_secs = strtol(line + 6, NULL, 10);
            line = strchr(line, '\n');
            if (line != NULL) line++;
        }
    }
    errno = kept;
    return faults;
}

static int is_watched(int fd) {
    const char *prefix = getenv("SHIM_PATH");
    if (prefix == NULL) return 0;
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int kept = errno;
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    errno = kept;
    if (length <= 0) return 0;
    path[length] = '\0';
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

/* Whether a write to the file fails; then `errno` says why. */
static int write_fails(int fd) {
    if (!is_watched(fd)) return 0;
    int error = read_faults().write_error;
    if (error != 0) errno = error;
    return error != 0;
}

static int sync_fails(int fd) {
    if (!is_watched(fd)) return 0;
    struct faults faults = read_faults();
    if (faults.slow_ms > 0) {
        struct timespec pause = {faults.slow_ms / 1000, faults.slow_ms % 1000 * 1000000};
        while (nanosleep(&pause, &pause) != 0 && errno == EINTR) {
        }
    }
    if (faults.sync_error != 0) errno = faults.sync_error;
    return faults.sync_error != 0;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    /* Pipes and sockets are the most frequent; `is_watched` answers for them quickly. */
    return write_fails(fd) ? -1 : syscall(SYS_write, fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    return write_fails(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    return write_fails(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return write_fails(fd) ? -1 : syscall(SYS_writev, fd, parts, count);
}

int ftruncate(int fd, off_t length) {
    return write_fails(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate64(int fd, off64_t length) {
    return write_fails(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int fallocate(int fd, int mode, off_t at, off_t length) {
    return write_fails(fd) ? -1 : (int)syscall(SYS_fallocate, fd, mode, at, length);
}

int posix_fallocate(int fd, off_t at, off_t length) {
    if (write_fails(fd)) return errno;
    return syscall(SYS_fallocate, fd, 0, at, length) == 0 ? 0 : errno;
}

int fsync(int fd) { return sync_fails(fd) ? -1 : (int)syscall(SYS_fsync, fd); }

int fdatasync(int fd) { return sync_fails(fd) ? -1 : (int)syscall(SYS_fdatasync, fd); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += read_faults().clock_secs;
    return result;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into != NULL) *into = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict into, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return 0;
}
