// SPDX-License-Identifier: Apache-2.0

#include "CBuild.h"

// Of executables that do not link the module BuildRecord, such as tests.

__attribute__((weak)) const char *identitybus_commit(void) { return ""; }

__attribute__((weak)) const char *identitybus_commit_day(void) { return ""; }

__attribute__((weak)) int identitybus_is_modified(void) { return 0; }
