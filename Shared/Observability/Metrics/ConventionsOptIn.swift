// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Whose metrics are told under the names of OpenTelemetry's semantic conventions too, beside ours (docs/operations.md
/// "Under OpenTelemetry's names"): the list of `OTEL_SEMCONV_STABILITY_OPT_IN`.
package struct ConventionsOptIn: Sendable, Equatable {
    package enum Category: String, Sendable, CaseIterable { case http, messaging }

    package let categories: Set<Category>
    /// What means nothing here, as it was written. The variable is one of a whole deployment: other programs may know it.
    package let ignored: [String]

    /// - Parameter list: values with commas between them. `/dup` behind one asks for the old names beside the new ones. Ours
    ///   are of no convention, old or new, and are there either way.
    package init(_ list: String) {
        var categories: Set<Category> = []
        var ignored: [String] = []
        for part in list.split(separator: ",") {
            let value = part.trimmingCharacters(in: .whitespaces)
            if value.isEmpty { continue }
            let name = value.lowercased()
            if let category = Category(rawValue: name.hasSuffix("/dup") ? String(name.dropLast(4)) : name) {
                categories.insert(category)
            } else {
                ignored.append(value)
            }
        }
        self.categories = categories
        self.ignored = ignored
    }

    package func includes(_ category: Category) -> Bool { categories.contains(category) }
}
