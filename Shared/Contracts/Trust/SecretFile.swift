// SPDX-License-Identifier: Apache-2.0

extension String {
    /// A secret as its file means it: editors and `echo` end a file with a line feed.
    public var withoutFinalNewlines: String { String(reversed().drop { $0.isNewline }.reversed()) }
}
