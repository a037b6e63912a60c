// SPDX-License-Identifier: Apache-2.0

import Contracts
public import Runtime
import WireJSON

extension Decision {
    /// What of it the generated writers (``WireWritable``) write otherwise than `Codable` does, for people: nothing, if all is well.
    public func writtenOtherwise() throws -> [String] {
        var values: [any WireWritable] = events
        values += forwards.map(\.command)
        values += due.map(\.command)
        values += ([outcome] + settlements.map(\.outcome)).compactMap(\.result)
        return try values.compactMap { value in
            var json = JSONOutput()
            try value.write(to: &json)
            let reference = try WireJSONEncoder().encode(value)
            guard json.bytes != reference else { return nil }
            return "\(String(decoding: json.bytes, as: UTF8.self)) for \(String(decoding: reference, as: UTF8.self))"
        }
    }
}

extension Outcome {
    fileprivate var result: (any CommandResult)? {
        switch self {
        case .succeeded(let result): result
        case .pending(let result): result
        case .rejected, .expired, .begun, .noted: nil
        }
    }
}
