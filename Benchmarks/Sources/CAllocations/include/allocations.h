// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

// How often this process has asked for memory since it started: malloc, calloc, realloc and the aligned ones.
uint64_t allocations_count(void);
