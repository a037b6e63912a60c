// SPDX-License-Identifier: Apache-2.0

#ifndef IDENTITYBUS_CBUILD_H
#define IDENTITYBUS_CBUILD_H

// What the module BuildRecord knows. Through C, so that nothing imports it: it is another one after each commit.

/// The commit that was built, 40 hexadecimal digits; empty where that is not known.
const char *identitybus_commit(void);

/// Its day in UTC, such as 2030-01-31; empty where that is not known.
const char *identitybus_commit_day(void);

/// Whether the sources were those of the commit with changes.
int identitybus_is_modified(void);

#endif
