// SPDX-License-Identifier: Apache-2.0

#ifndef IDENTITYBUS_CLIBRDKAFKA_SHIM_H
#define IDENTITYBUS_CLIBRDKAFKA_SHIM_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <malloc.h>

/// Gives free memory back to the kernel: a client that knew thousands of topics leaves much of it.
static inline void identitybus_give_memory_back(void) {
    malloc_trim(0);
}

#endif
