// SPDX-License-Identifier: Apache-2.0
//
// The loader takes these functions instead of glibc's, because they stand in the executable. They count and pass on.
#define _GNU_SOURCE
#include "allocations.h"
#include <errno.h>
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static uint64_t count;

uint64_t allocations_count(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

static void one(void) { __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); }

void *malloc(size_t size) {
    one();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    one();
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    one();
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    one();
    return __libc_memalign(alignment, size);
}

void *memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    *result = aligned_alloc(alignment, size);
    return *result ? 0 : ENOMEM;
}
