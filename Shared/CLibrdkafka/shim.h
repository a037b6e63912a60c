// SPDX-License-Identifier: Apache-2.0

#ifndef IDENTITYBUS_CLIBRDKAFKA_SHIM_H
#define IDENTITYBUS_CLIBRDKAFKA_SHIM_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#endif
