// SPDX-License-Identifier: Apache-2.0

#ifndef IDENTITYBUS_CLIBPQ_SHIM_H
#define IDENTITYBUS_CLIBPQ_SHIM_H

#include <libpq-fe.h>

#endif
