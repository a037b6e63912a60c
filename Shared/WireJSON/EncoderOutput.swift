// SPDX-License-Identifier: Apache-2.0

/// One text being written, shared by all encoders and containers that write to it.
final class EncoderOutput {
    var state: EncoderState
    /// The keys that lead to this output, and from it to the value being encoded.
    private let prefix: [any CodingKey]
    private var keys: [any CodingKey] = []

    init(sortedKeys: Bool, path: [any CodingKey]) {
        state = EncoderState(sortedKeys: sortedKeys)
        prefix = path
    }

    var codingPath: [any CodingKey] { prefix + keys }

    /// The text once everything in it has been written.
    func finish() throws -> [UInt8] {
        try state.finish()
    }

    /// Encodes `value` at the present place, one level deeper, and takes everything back to `mark` when that
    /// fails, so that a caller who ignores the error still gets a well-formed document.
    func nest<T: Encodable>(_ value: T, key: any CodingKey, mark: EncoderState.Mark) throws {
        let depth = keys.count
        keys.append(key)
        defer { keys.removeLast(keys.count - depth) }
        do {
            let id = state.push()
            try value.encode(to: EncoderLevel(output: self, id: id))
            try state.pop()
        } catch {
            state.rollBack(to: mark)
            throw error
        }
    }

    /// An output of its own for a nested container, inserted at the present place later.
    func child(key: any CodingKey) -> EncoderOutput {
        let output = EncoderOutput(sortedKeys: state.sortedKeys, path: codingPath + [key])
        state.insertLater(output)
        return output
    }

    func misuse(_ value: Any, _ key: (any CodingKey)? = nil) -> EncodingError {
        .invalidValue(value, context(key, "written through a container that is closed, or a second time"))
    }

    func context(_ key: (any CodingKey)?, _ text: String) -> EncodingError.Context {
        EncodingError.Context(codingPath: codingPath + (key.map { [$0] } ?? []), debugDescription: text)
    }

    /// The text of a floating point number.
    @inline(__always)
    func text<F: BinaryFloatingPoint & LosslessStringConvertible>(
        _ value: F, _ key: @autoclosure () -> (any CodingKey)?
    ) throws -> String {
        if let text = JSONText.shortest(value) { return text }
        throw EncodingError.invalidValue(value, context(key(), "JSON has no NaN and no infinities"))
    }
}
