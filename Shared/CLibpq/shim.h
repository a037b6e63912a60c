// SPDX-License-Identifier: Apache-2.0

#ifndef IDENTITYBUS_CLIBPQ_SHIM_H
#define IDENTITYBUS_CLIBPQ_SHIM_H

#include <libpq-fe.h>

/* Of OpenSSL, which libpq speaks TLS with (`PQsslStruct` gives its session): the certificate that a server shows, and its
   bytes. Declared here, so that its headers need not be read. */
struct ssl_st;
struct x509_st;
struct x509_st *SSL_get1_peer_certificate(const struct ssl_st *session);
int i2d_X509(struct x509_st *certificate, unsigned char **bytes);
void X509_free(struct x509_st *certificate);

#endif
