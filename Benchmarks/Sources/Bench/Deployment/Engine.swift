// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// The store behind the service.
enum Engine: String, CaseIterable, ExpressibleByArgument {
    case sqlite
    case postgresql

    var name: String { self == .sqlite ? "SQLite" : "PostgreSQL" }
}
