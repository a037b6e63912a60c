// SPDX-License-Identifier: Apache-2.0

import Foundation

enum Kind: String, Codable {
    case laptop, phone
}

enum Level: Int, Codable {
    case low = 1
    case high = 2
}

enum Choice: Codable, Equatable {
    case none
    case named(name: String, count: Int)
    case pair(Int, Int)
}

struct Device: Codable, Equatable {
    var kind: Kind
    var level: Level?
    var serial: Int64
}

struct Everything: Codable, Equatable {
    var text = "é\"\\\n😀\u{0}"
    var flag = true
    var double = 0.1
    var float: Float = 0.1
    var int = Int.min
    var int8 = Int8.min
    var int16 = Int16.min
    var int32 = Int32.min
    var int64 = Int64.min
    var uint = UInt.max
    var uint8 = UInt8.max
    var uint16 = UInt16.max
    var uint32 = UInt32.max
    var uint64 = UInt64.max
    var absent: String?
    var present: Int? = 3
    var list = [1, 2, 3]
    var bytes: [UInt8] = [0, 127, 255]
    var matrix: [[String?]] = [["a", nil], []]
    var table: [String: Int] = ["one": 1, "zwei": 2]
    var numbers: [Int: String] = [7: "seven"]
    var device = Device(kind: .phone, level: .high, serial: .max)
    var devices = [Device(kind: .laptop, level: nil, serial: 0)]
    var choices: [Choice] = [.none, .named(name: "n", count: 2), .pair(1, 2)]
    var uuid = UUID(uuidString: "0198C0DE-7A51-7C3E-9F0E-3B1D5A2C4E6F")
    var empty = Empty()

    struct Empty: Codable, Equatable {}
}

class Base: Codable {
    var name = "base"

    init() {}
}

final class Derived: Base {
    var extra = 0

    override init() {
        super.init()
    }

    private enum Keys: String, CodingKey {
        case extra
    }

    required init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        extra = try container.decode(Int.self, forKey: .extra)
        try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try super.encode(to: container.superEncoder())
        try container.encode(extra, forKey: .extra)
    }
}

/// Runs any code as an `encode` method.
struct Custom: Encodable {
    let body: (any Encoder) throws -> Void

    func encode(to encoder: any Encoder) throws {
        try body(encoder)
    }
}

struct Name: CodingKey, ExpressibleByStringLiteral {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringLiteral value: String) {
        stringValue = value
    }

    init?(stringValue: String) {
        self.stringValue = stringValue
    }

    init?(intValue: Int) {
        return nil
    }
}
