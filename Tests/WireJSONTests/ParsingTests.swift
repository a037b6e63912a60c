// SPDX-License-Identifier: Apache-2.0

import Testing
import WireJSON

@Suite struct ParsingTests {
    static let accepted = [
        "null", "true", "false", " 0 ", "-0", "-1", "12345678901234567890123", "1.5", "0.0", "1e5", "1E+5", "1e-05",
        "-0.0e-0", "\"\"", "\"a\"", "[]", "{}", "[ ]", "{ }", "\t\r\n[1 , 2]\n", "{\"\":0}", "{\"a\":{\"a\":1}}",
        "[[],{}]", #""\"\\\/\b\f\n\r\t""#, #""\u0000""#, #""\u00e9\u00E9""#, #""\ud83d\ude00""#, #""\uDBFF\uDFFF""#,
        #""\uFFFF""#, "\"\u{7F}\"", "\"é€😀\u{10FFFF}\"", "\"\u{FEFF}\"", "{\"a\":1,\"A\":2}", "[1e999]",
    ]

    @Test(arguments: accepted)
    func accepts(_ document: String) throws {
        _ = try parse(document)
    }

    static let notJSON: [(String, Int)] = [
        ("", 0), (" ", 1), ("nul", 3), ("nulL", 3), ("True", 0), ("tru e", 3), ("nullx", 4), ("1 2", 2), ("01", 1),
        ("-", 1), ("-a", 1), ("-01", 2), ("+1", 0), (".5", 0), ("1.", 2), ("1.e5", 2), ("1e", 2), ("1e+", 3),
        ("0x10", 1), ("1_0", 1), ("NaN", 0), ("Infinity", 0), ("-Infinity", 1), ("'a'", 0), ("\"", 1), ("\"a", 2),
        ("\"\n\"", 1), ("\"\u{0}\"", 1), ("\"\t\"", 1), (#""\x41""#, 2), (#""\u12""#, 5), (#""\u12G4""#, 5),
        (#""\"#, 2), (#""\ud800""#, 1), (#""\ud800\u0041""#, 1), (#""\udc00""#, 1), (#""\ud800\ud800""#, 1),
        (#""a\ude00\ud83d""#, 2), ("[", 1), ("]", 0), ("[1", 2), ("[1,", 3), ("[1,]", 3), ("[,1]", 1), ("[1 2]", 3),
        ("[1}", 2), ("{", 1), ("}", 0), ("{\"a\"}", 4), ("{\"a\":}", 5), ("{\"a\":1,}", 7), ("{,}", 1), ("{a:1}", 1),
        ("{1:1}", 1), ("{\"a\":1", 6), ("{\"a\" 1}", 5), ("{\"a\":1 \"b\":2}", 7), ("{\"a\":1]", 6), ("[]]", 2),
        ("{}{}", 2), ("// c\n1", 0), ("1/**/", 1), ("\u{FEFF}1", 0), ("\u{A0}1", 0), ("1\u{0}", 1), ("\u{0}", 0),
        ("[1\u{C}]", 2), ("é", 0),
    ]

    @Test(arguments: notJSON)
    func refusesWithTheOffset(_ document: String, _ offset: Int) throws {
        let error = try #require(refusal(Array(document.utf8)))
        #expect(error.reason == .notJSON)
        #expect(error.offset == offset, "\(error)")
    }

    static let notUTF8: [[UInt8]] = [
        [0x80], [0xBF], [0xC0, 0xAF], [0xC1, 0xBF], [0xC3], [0xC3, 0x28], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
        [0xE2, 0x82], [0xE2, 0x28, 0xA1], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80],
        [0xF0, 0x8F, 0xBF, 0xBF], [0xF0, 0x9F, 0x98], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFE],
        [0xFF], [0xF0, 0x9F, 0x98, 0x41], [0xE2, 0x82, 0x41],
    ]

    @Test(arguments: notUTF8)
    func refusesIllFormedUTF8(_ sequence: [UInt8]) throws {
        // As text, as a member name, behind seven and eight plain bytes, and outside of any string.
        let wrapped: [([UInt8], Int)] = [
            (Array("\"".utf8) + sequence + Array("\"".utf8), 1),
            (Array("{\"".utf8) + sequence + Array("\":1}".utf8), 2),
            (Array("\"1234567".utf8) + sequence + Array("tail\"".utf8), 8),
            (Array("\"12345678".utf8) + sequence + Array("tail\"".utf8), 9),
            (Array("[".utf8) + sequence, 1),
        ]
        for (bytes, offset) in wrapped {
            let error = try #require(refusal(bytes))
            #expect(error.reason == .notUTF8)
            #expect(error.offset == offset)
        }
    }

    @Test func everyScalarSurvives() throws {
        for code in UInt32(0x20)...0x10FFFF where code % 7 == 0 || code < 0x900 {
            guard let scalar = Unicode.Scalar(code), scalar != "\"", scalar != "\\" else { continue }
            let text = String(Character(scalar))
            let value = try parse("\"\(text)\"")
            #expect(value.stringValue.map { Array($0.utf8) } == Array(text.utf8))
        }
    }

    static let duplicates: [(String, Int)] = [
        (#"{"a":1,"a":1}"#, 7), (#"{"a":1,"b":{"c":1,"d":2,"c":3}}"#, 24), (#"{"a":1,"\u0061":2}"#, 7),
        (#"{"\u0061":1,"a":2}"#, 12), (#"{"":1,"":2}"#, 6), ("{\"é\":1,\"e\u{301}\":2}", 8),
        ("{\"K\":1,\"\u{212A}\":2}", 7), (#"[{"a":1},{"a":1,"a":2}]"#, 16),
    ]

    @Test(arguments: duplicates)
    func refusesDuplicates(_ document: String, _ offset: Int) throws {
        let error = try #require(refusal(Array(document.utf8)))
        #expect(error.reason == .duplicateMember)
        #expect(error.offset == offset)
    }

    @Test(arguments: [2, 20, 23, 24, 25, 26, 100, 5000])
    func findsADuplicateAmongMany(_ count: Int) throws {
        let names = (0..<count).map { "\"n\($0)\":\($0)" }
        #expect(try parse("{\(names.joined(separator: ","))}").objectValue?.count == count)
        for victim in [0, count / 2, count - 1] {
            let document = "{\(names.joined(separator: ",")),\"n\(victim)\":0}"
            #expect(refusal(Array(document.utf8))?.reason == .duplicateMember)
        }
    }

    @Test func countsDepth() throws {
        func nested(_ depth: Int, _ open: String, _ close: String) -> [UInt8] {
            Array((String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)).utf8)
        }
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            #expect(refusal(nested(32, open, close)) == nil)
            let error = try #require(refusal(nested(33, open, close)))
            #expect(error.reason == .tooDeep)
            #expect(error.offset == 32 * open.utf8.count)
        }
        #expect(refusal(Array("[[1]]".utf8), maxDepth: 2) == nil)
        #expect(refusal(Array("[[1]]".utf8), maxDepth: 1)?.reason == .tooDeep)
        #expect(refusal(Array("[[1],[2],{\"a\":3}]".utf8), maxDepth: 2) == nil)
        #expect(refusal(nested(100_000, "[", "]"))?.reason == .tooDeep)
        #expect(refusal(nested(512, "[", "]"), maxDepth: .max) == nil)
        #expect(refusal(nested(50_000, "[", "]"), maxDepth: .max)?.reason == .tooDeep)
    }

    @Test func limitsTheLength() throws {
        let limits = JSONLimits(maxBytes: 10)
        #expect(try JSONValue(parsing: Array("[1,2,3,45]".utf8), limits: limits).arrayValue?.count == 4)
        #expect { try JSONValue(parsing: Array("[1,2,3,456]".utf8), limits: limits) } throws: {
            ($0 as? JSONParseError)?.reason == .tooLarge
        }
        let whole = Array("\"\(String(repeating: "a", count: 262_142))\"".utf8)
        #expect(refusal(whole) == nil)
        #expect(refusal(whole + [0x20])?.reason == .tooLarge)
    }

    @Test func refusesEveryPrefix() throws {
        let document = Array(#" {"a":[1,-2.5e+3,true,false,null],"é\u20ac\ud83d\ude00":{"b":"😀x"}}"#.utf8)
        #expect(refusal(document) == nil)
        for length in 0..<document.count {
            let error = try #require(refusal(Array(document[..<length])), "prefix of \(length) bytes")
            #expect(error.reason == .notJSON || error.reason == .notUTF8)
            #expect(error.offset <= length)
        }
    }

    @Test func offersTheSameFromEveryKindOfInput() throws {
        let bytes = Array("xx[1,\"abc\"]yy".utf8)
        let expected: JSONValue = [1, "abc"]
        #expect(try JSONValue(parsing: bytes[2..<11]) == expected)
        #expect(try JSONValue(parsing: Array(bytes[2..<11]).span) == expected)
        #expect(try JSONValue(parsing: "[1,\"abc\"]".utf8) == expected)
        #expect(try JSONValue(parsing: bytes[2..<11].lazy.map { $0 }) == expected)
        #expect(try bytes[2..<11].withUnsafeBytes { try JSONValue(parsing: $0) } == expected)
        #expect(throws: JSONParseError.self) { try JSONValue(parsing: [UInt8]()) }
        #expect(throws: JSONParseError.self) { try JSONValue(parsing: bytes[2..<10]) }
    }

    @Test func describesErrorsForPeople() {
        let secret = Array(#"{"password":"hunter2secret" "x"}"#.utf8)
        let error = refusal(secret)
        #expect(error?.description == "not JSON at byte 28: expected ',' or '}' after a member, found '\"'")
        #expect(refusal([])?.description == "not JSON at byte 0: expected a value, found the end of the document")
        #expect(
            refusal([0x22, 0xFF])?.description
                == "not UTF-8 at byte 1: expected well-formed UTF-8, found byte 0xFF")
        #expect(refusal([0x5B, 0x07])?.description == "not JSON at byte 1: expected a value, found byte 0x07")
    }

    @Test func keepsOrderAndLexemes() throws {
        let value = try parse(#"{"z":1.50,"a":12345678901234567890,"m":1E+02}"#)
        #expect(value.objectValue?.members.map(\.name) == ["z", "a", "m"])
        #expect(text(value.serialized()) == #"{"z":1.50,"a":12345678901234567890,"m":1E+02}"#)
        #expect(value["z"]?.doubleValue == 1.5)
        #expect(value["a"]?.int64Value == nil)
        #expect(value["m"]?.doubleValue == 100)
        #expect(value["missing"] == nil)
    }
}
