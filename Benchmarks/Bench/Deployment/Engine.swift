// SPDX-License-Identifier: Apache-2.0

/// The store behind the service.
enum Engine: String, CaseIterable {
    case sqlite
    case postgresql
}
