// SPDX-License-Identifier: Apache-2.0

extension JSONValue {
    /// The value as JSON text without white space, members in their order, numbers as they were written.
    public func serialized() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(512)
        JSONWriter.append(self, style: .asIs, to: &bytes)
        return bytes
    }

    /// Appends what `serialized()` returns.
    public func appendSerialized(to bytes: inout [UInt8]) {
        JSONWriter.append(self, style: .asIs, to: &bytes)
    }

    /// The value as JSON text that is equal for equal content, for digests and signatures.
    ///
    /// Two documents give the same bytes when they differ only in white space, in the order of members or in
    /// how strings and names are escaped. Members are sorted by the UTF-8 bytes of their names; there is no
    /// white space; only `"`, `\` and control characters are escaped. Integers (no fraction, no exponent) are
    /// written by value, which makes `-0` a `0`; any other number is written as it was read, so `1.0`, `1e0`
    /// and `1` stay three different numbers. Strings are not Unicode normalised.
    public func canonicalBytes() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(512)
        JSONWriter.append(self, style: .canonical, to: &bytes)
        return bytes
    }
}
