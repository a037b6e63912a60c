// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Text whose identity is its bytes. Swift's own `==` also takes canonically equivalent spellings for equal ("é" as
/// one scalar or two), which databases and other languages do not: ids are compared as this, never as `String`.
public struct ExactText: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
    public let text: String

    public init(_ text: String) { self.text = text }

    public init(stringLiteral text: String) { self.text = text }

    public var description: String { text }

    public static func == (left: ExactText, right: ExactText) -> Bool {
        // What Swift takes for different has different bytes; the other way round it has to be looked at.
        left.text == right.text && left.order(right) == 0
    }

    public static func < (left: ExactText, right: ExactText) -> Bool { left.order(right) < 0 }

    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Below, at or above 0 as the bytes of this text stand before, equal or stand behind the other's.
    private func order(_ other: ExactText) -> Int {
        var (left, right) = (text, other.text)
        return left.withUTF8 { left in
            right.withUTF8 { right in
                let count = min(left.count, right.count)
                guard count > 0, let leftStart = left.baseAddress, let rightStart = right.baseAddress else {
                    return left.count - right.count
                }
                let order = memcmp(leftStart, rightStart, count)
                return order == 0 ? left.count - right.count : Int(order)
            }
        }
    }
}
