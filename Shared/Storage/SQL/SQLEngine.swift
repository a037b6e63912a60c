// SPDX-License-Identifier: Apache-2.0

/// The engine behind a ``SQLDatabase``, for the few statements whose text has to differ.
public enum SQLEngine: String, Sendable, Hashable, CaseIterable {
    case sqlite
    case postgresql
}
