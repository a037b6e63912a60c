// SPDX-License-Identifier: Apache-2.0

extension DecisionsNoted {
    /// The last one of the first list that has any, but for replies, which have messages of their own.
    public var last: String? { decisions.last ?? repeated?.last ?? refused?.last }
}
