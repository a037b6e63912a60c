// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>

/// LLVM's libFuzzer, which comes with the Swift toolchain.
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*callback)(const uint8_t *data, size_t size));
