// SPDX-License-Identifier: Apache-2.0

#ifndef IDENTITYBUS_CZLIB_SHIM_H
#define IDENTITYBUS_CZLIB_SHIM_H

#include <zlib.h>

// inflateInit2 is a macro, which Swift does not see. 16 more window bits: a gzip header, and no other.
static inline int identitybus_inflate_init_gzip(z_stream *stream) {
    return inflateInit2(stream, MAX_WBITS + 16);
}

#endif
