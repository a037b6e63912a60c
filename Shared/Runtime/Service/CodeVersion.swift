// SPDX-License-Identifier: Apache-2.0

/// The version of the code that stands beside each decision in the inbox.
enum CodeVersion {
    /// To be raised when anything is decided differently than before.
    static let current = "1"
}
