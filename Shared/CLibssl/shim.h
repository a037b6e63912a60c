// SPDX-License-Identifier: Apache-2.0

#ifndef IDENTITYBUS_CLIBSSL_SHIM_H
#define IDENTITYBUS_CLIBSSL_SHIM_H

/* A client's side of TLS by the OpenSSL 3 that librdkafka and libpq bring along. Declared here, so that its headers need not be
   read, and what are macros there are functions. */
typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
typedef struct X509_VERIFY_PARAM_st X509_VERIFY_PARAM;

const SSL_METHOD *TLS_client_method(void);
SSL_CTX *SSL_CTX_new(const SSL_METHOD *method);
void SSL_CTX_free(SSL_CTX *context);
long SSL_CTX_ctrl(SSL_CTX *context, int command, long number, void *pointer);
int SSL_CTX_load_verify_locations(SSL_CTX *context, const char *file, const char *folder);
int SSL_CTX_set_default_verify_paths(SSL_CTX *context);
void SSL_CTX_set_verify(SSL_CTX *context, int mode, void *callback);

SSL *SSL_new(SSL_CTX *context);
void SSL_free(SSL *session);
void SSL_set_bio(SSL *session, BIO *input, BIO *output);
void SSL_set_connect_state(SSL *session);
int SSL_do_handshake(SSL *session);
int SSL_read(SSL *session, void *bytes, int count);
int SSL_write(SSL *session, const void *bytes, int count);
int SSL_get_error(const SSL *session, int result);
long SSL_ctrl(SSL *session, int command, long number, void *pointer);
int SSL_set1_host(SSL *session, const char *name);
X509_VERIFY_PARAM *SSL_get0_param(SSL *session);
int X509_VERIFY_PARAM_set1_ip_asc(X509_VERIFY_PARAM *parameters, const char *address);
long SSL_get_verify_result(const SSL *session);
const char *X509_verify_cert_error_string(long number);

BIO *BIO_new(const BIO_METHOD *method);
const BIO_METHOD *BIO_s_mem(void);
int BIO_read(BIO *bio, void *bytes, int count);
int BIO_write(BIO *bio, const void *bytes, int count);

unsigned long ERR_get_error(void);
void ERR_clear_error(void);
const char *ERR_reason_error_string(unsigned long number);

enum { identitybus_tls_wants_read = 2, identitybus_tls_has_ended = 6, identitybus_tls_verifies_peer = 1 };

/* TLS 1.2 and later. */
static inline int identitybus_tls_set_oldest(SSL_CTX *context) {
    return (int)SSL_CTX_ctrl(context, 123, 0x0303, 0);
}

/* Says in the handshake whom it is for. */
static inline int identitybus_tls_set_name(SSL *session, const char *name) {
    return (int)SSL_ctrl(session, 55, 0, (void *)name);
}

#endif
