// SPDX-License-Identifier: Apache-2.0

#ifndef IDENTITYBUS_CZSTD_SHIM_H
#define IDENTITYBUS_CZSTD_SHIM_H

#include <zstd.h>

#endif
