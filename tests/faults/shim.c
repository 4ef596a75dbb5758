/* Fails the k-th call of a kind on files below a folder, or on connections to a server. It is preloaded before the C
 * library and controlled through a shared page of memory (by `disk.py`). Unarmed, it only passes calls on. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, TRUNCATE = 4, OPEN = 8, REMOVE = 16, RENAME = 32, READ = 64, NETWORK = 128 };
enum { OFF = 0, COUNT = 1, FAIL = 2 };

struct control {
    uint32_t mode;
    uint32_t kinds;  /* the calls to count */
    uint32_t at;     /* the first call that fails, counted from one */
    uint32_t sticky; /* true: later calls fail, too */
    int32_t error;   /* the errno; 0: write half of the data */
    int32_t later;   /* the errno of later failures, if sticky */
    uint32_t calls;
    uint32_t failed;
    char folder[PATH_MAX];
    char shadow[PATH_MAX]; /* folder for copies of files as last synced; none if empty */
};

static struct control *control;

__attribute__((constructor)) static void map_control(void) {
    const char *path = getenv("FAULTS_CONTROL");
    if (path == NULL) return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *page = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) control = page;
}

static int below(const char *path) {
    size_t length = strlen(control->folder);
    return strncmp(path, control->folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int below_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* 0: pass on. -1: fail; errno is set. 1: do half of it. */
static int decide(uint32_t kind) {
    uint32_t call = __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
    if (control->mode != FAIL || call < control->at || (call > control->at && !control->sticky)) return 0;
    __atomic_add_fetch(&control->failed, 1, __ATOMIC_SEQ_CST);
    int error = call == control->at ? control->error : control->later;
    if (error == 0) return kind == WRITE ? 1 : 0;
    errno = error;
    return -1;
}

static int wanted(uint32_t kind) { return control != NULL && control->mode != OFF && (control->kinds & kind); }

static int fate(uint32_t kind, int fd) { return wanted(kind) && below_fd(fd) ? decide(kind) : 0; }

static int fate_of(uint32_t kind, const char *path) { return wanted(kind) && below(path) ? decide(kind) : 0; }

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define WRITES(name, parameters, arguments, half)          \
    ssize_t name parameters {                              \
        static __typeof__(&name) next;                     \
        if (next == NULL) next = NEXT(name);               \
        int found = fate(WRITE, fd);                       \
        if (found < 0) return -1;                          \
        return found ? next half : next arguments;         \
    }

WRITES(write, (int fd, const void *data, size_t size), (fd, data, size), (fd, data, size / 2))
WRITES(pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), (fd, data, size / 2, at))
WRITES(pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), (fd, data, size / 2, at))
WRITES(writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), (fd, parts, (count + 1) / 2))
WRITES(pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at),
       (fd, parts, (count + 1) / 2, at))
WRITES(pwritev64, (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at),
       (fd, parts, (count + 1) / 2, at))

#define ON_FD(kind, type, name, parameters, arguments)     \
    type name parameters {                                 \
        static __typeof__(&name) next;                     \
        if (next == NULL) next = NEXT(name);               \
        return fate(kind, fd) ? -1 : next arguments;       \
    }

ON_FD(READ, ssize_t, read, (int fd, void *data, size_t size), (fd, data, size))
ON_FD(READ, ssize_t, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
ON_FD(READ, ssize_t, pread64, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))
/* The folder was synced: files removed before that stay removed. */
static void drop_removed(void) {
    char copy[PATH_MAX], original[PATH_MAX];
    DIR *copies = opendir(control->shadow);
    if (copies == NULL) abort();
    for (struct dirent *entry; (entry = readdir(copies)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        if (snprintf(original, sizeof original, "%s/%s", control->folder, entry->d_name) >= (int)sizeof original) abort();
        if (snprintf(copy, sizeof copy, "%s/%s", control->shadow, entry->d_name) >= (int)sizeof copy) abort();
        if (access(original, F_OK) != 0) unlink(copy);
    }
    closedir(copies);
}

/* Copy a file that was just synced: a power cut leaves only this. */
static void keep(int fd) {
    char link[64], path[PATH_MAX], part[PATH_MAX + 8], copy[PATH_MAX];
    struct stat about;
    if (control == NULL || control->shadow[0] == 0 || !below_fd(fd)) return;
    if (fstat(fd, &about) != 0) abort();
    if (S_ISDIR(about.st_mode)) drop_removed();
    if (!S_ISREG(about.st_mode)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) abort();
    path[length] = 0;
    if (snprintf(copy, sizeof copy, "%s/%s", control->shadow, strrchr(path, '/') + 1) >= (int)sizeof copy) abort();
    snprintf(part, sizeof part, "%s.part", copy);
    int target = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (target < 0) abort();
    char buffer[65536];
    off_t at = 0;
    ssize_t got;
    for (; (got = pread(fd, buffer, sizeof buffer, at)) > 0; at += got)
        if (write(target, buffer, got) != got) abort();
    /* Opened write-only. Opening it again and closing it would release the process's locks on it. */
    if (got < 0) abort();
    close(target);
    /* Atomic: a killed process leaves the old copy or the new one. */
    if (rename(part, copy) != 0) abort();
}

#define SYNCS(name)                                        \
    int name(int fd) {                                     \
        static __typeof__(&name) next;                     \
        if (next == NULL) next = NEXT(name);               \
        if (fate(SYNC, fd)) return -1;                     \
        int answer = next(fd);                             \
        if (answer == 0) keep(fd);                         \
        return answer;                                     \
    }

SYNCS(fsync)
SYNCS(fdatasync)
ON_FD(TRUNCATE, int, ftruncate, (int fd, off_t size), (fd, size))
ON_FD(TRUNCATE, int, ftruncate64, (int fd, off64_t size), (fd, size))
ON_FD(TRUNCATE, int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size))
ON_FD(TRUNCATE, int, fallocate64, (int fd, int mode, off64_t at, off64_t size), (fd, mode, at, size))

int posix_fallocate(int fd, off_t at, off_t size) {
    /* Returns the error instead of setting errno. */
    return fate(TRUNCATE, fd) ? errno : NEXT(posix_fallocate)(fd, at, size);
}

#define ON_PATH(kind, name, parameters, arguments)         \
    int name parameters {                                  \
        static __typeof__(&name) next;                     \
        if (next == NULL) next = NEXT(name);               \
        return fate_of(kind, path) ? -1 : next arguments;  \
    }

ON_PATH(REMOVE, unlink, (const char *path), (path))
ON_PATH(REMOVE, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
ON_PATH(RENAME, rename, (const char *path, const char *to), (path, to))
ON_PATH(RENAME, renameat, (int from, const char *path, int folder, const char *to), (from, path, folder, to))

#define OPENS(name, parameters, ...)                       \
    int name parameters {                                  \
        static int (*next) parameters;                     \
        if (next == NULL) next = dlsym(RTLD_NEXT, #name);  \
        mode_t mode = 0;                                   \
        if (flags & (O_CREAT | O_TMPFILE)) {               \
            va_list rest;                                  \
            va_start(rest, flags);                         \
            mode = va_arg(rest, mode_t);                   \
            va_end(rest);                                  \
        }                                                  \
        return fate_of(OPEN, path) ? -1 : next(__VA_ARGS__, mode); \
    }

OPENS(open, (const char *path, int flags, ...), path, flags)
OPENS(open64, (const char *path, int flags, ...), path, flags)
OPENS(openat, (int folder, const char *path, int flags, ...), folder, path, flags)
OPENS(openat64, (int folder, const char *path, int flags, ...), folder, path, flags)

/* True if the peer has an address: socket pairs within a process have none. */
static int to_a_server(int fd) {
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0) return 0;
    return peer.ss_family != AF_UNIX || length > sizeof(sa_family_t);
}

/* A failed connection is dead in both directions, and the server notices it, too. */
static int cut(int fd) {
    if (!wanted(NETWORK) || !to_a_server(fd) || !decide(NETWORK)) return 0;
    int error = errno;
    shutdown(fd, SHUT_RDWR);
    errno = error;
    return 1;
}

#define ON_SOCKET(name, parameters, arguments)             \
    ssize_t name parameters {                              \
        static __typeof__(&name) next;                     \
        if (next == NULL) next = NEXT(name);               \
        return cut(fd) ? -1 : next arguments;              \
    }

ON_SOCKET(send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags))
ON_SOCKET(recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
