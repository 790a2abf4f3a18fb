/* Makes writes or syncs of one folder's files fail while a control file says so; preloaded into a server under test.
 *
 * The control file holds four 32-bit integers: what fails (1 writes, 2 syncs), the errno, how many more calls
 * fail (-1 = all), and how many have failed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITES = 1, SYNCS = 2 };
static volatile int32_t *control;
static char folder[4096];

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("DISK_FAULTS_CONTROL"), *place = getenv("DISK_FAULTS_FOLDER");
    if (file == NULL || place == NULL || strlen(place) >= sizeof folder) return;
    strcpy(folder, place);
    int fd = open(file, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *map = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED) control = map;
}

static int fails(int fd, int kind) {
    if (control == NULL || !(control[0] & kind) || control[2] == 0) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (strncmp(path, folder, strlen(folder)) != 0) return 0;
    if (control[2] > 0) __atomic_fetch_sub(&control[2], 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&control[3], 1, __ATOMIC_SEQ_CST);
    errno = control[1];
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *data, size_t size) {
    return fails(fd, WRITES) ? -1 : REAL(write)(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    return fails(fd, WRITES) ? -1 : REAL(pwrite)(fd, data, size, place);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    return fails(fd, WRITES) ? -1 : REAL(pwrite64)(fd, data, size, place);
}
int ftruncate(int fd, off_t size) { return fails(fd, WRITES) ? -1 : REAL(ftruncate)(fd, size); }
int ftruncate64(int fd, off64_t size) { return fails(fd, WRITES) ? -1 : REAL(ftruncate64)(fd, size); }
int fsync(int fd) { return fails(fd, SYNCS) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails(fd, SYNCS) ? -1 : REAL(fdatasync)(fd); }
