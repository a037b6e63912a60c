// SPDX-License-Identifier: Apache-2.0

// What glibc's module for Swift leaves out.
#include <malloc.h>
