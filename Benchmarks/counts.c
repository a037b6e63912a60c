// SPDX-License-Identifier: Apache-2.0
//
// Counts what a process takes from the heap: LD_PRELOAD=…/counts.so ALLOCATIONS=FILE. At its end the process adds a line
// to the file: its name and the number of blocks that the thread asked for which asked for most. Of a service that is the
// loop's thread; what librdkafka's threads take depends on how busy the machine is. scripts/bench counts uses it.

#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern char *program_invocation_short_name;

// Of each thread that there ever was; from the last one on they share.
#define THREADS 1024
static atomic_ulong blocks[THREADS];
static atomic_int threads;
static __thread __attribute__((tls_model("initial-exec"))) int own = -1;

static void count(void) {
    if (own < 0) {
        own = atomic_fetch_add(&threads, 1);
        if (own >= THREADS) own = THREADS - 1;
    }
    atomic_fetch_add_explicit(&blocks[own], 1, memory_order_relaxed);
}

void *malloc(size_t size) { return count(), __libc_malloc(size); }
void *calloc(size_t number, size_t size) { return count(), __libc_calloc(number, size); }
void *realloc(void *block, size_t size) { return count(), __libc_realloc(block, size); }
void *memalign(size_t alignment, size_t size) { return count(), __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return count(), __libc_memalign(alignment, size); }
int posix_memalign(void **block, size_t alignment, size_t size) {
    count();
    *block = __libc_memalign(alignment, size);
    return *block ? 0 : ENOMEM;
}

// Valgrind 3.19 writes to the mask that it is given, and libdispatch's stands in memory that cannot be written.
int sigsuspend(const sigset_t *mask) {
    sigset_t copy = *mask;
    return syscall(SYS_rt_sigsuspend, &copy, 8);
}

__attribute__((destructor)) static void tell(void) {
    unsigned long most = 0;
    for (int i = 0; i < THREADS; i++)
        if (atomic_load(&blocks[i]) > most) most = atomic_load(&blocks[i]);
    const char *path = getenv("ALLOCATIONS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s %lu\n", program_invocation_short_name, most);
    fclose(file);
}
