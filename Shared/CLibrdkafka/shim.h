// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

#ifndef IDENTITYBUS_CLIBRDKAFKA_SHIM_H
#define IDENTITYBUS_CLIBRDKAFKA_SHIM_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#endif
