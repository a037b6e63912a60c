// SPDX-License-Identifier: Apache-2.0

/// Why a benchmark ended without a number.
struct BenchError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}
