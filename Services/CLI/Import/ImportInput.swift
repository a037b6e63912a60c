// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
import Glibc
import Supervision
import WireJSON

/// One person of the input.
struct ImportItem {
    enum Kind: String { case users, profiles }

    /// `nil` for what is no person; `problem` then says why.
    var kind: Kind?
    /// As it is sent: an object.
    var data = JSONValue.null
    var problem: String?
    /// As it stands in the input, so that it can be mended and fed again.
    var original: Original
    /// How many bytes of the input that is.
    var size: Int { end - start }
    /// The number of its first line, from 1, and of the line behind it.
    var line: Int
    var nextLine: Int
    /// Where it begins, and where the next one does.
    var start: Int
    var end: Int
    /// Of all that the input has before `end`.
    var digest: SHA256

    enum Original {
        case json([UInt8])
        case rows([[String]])
    }

    /// An element that would leave no room for others is refused here.
    static let mostBytes = 200 << 10
}

/// The persons of a file, one after the other.
protocol ImportReader {
    /// - Returns: `nil` at the end.
    mutating func next() throws -> ImportItem?
}

/// Lines of a file or of standard input, with where they begin.
struct LineReader {
    struct Line {
        var bytes: [UInt8]
        var number: Int
        var start: Int
        var end: Int
        /// Of all before `end`.
        var digest: SHA256
    }

    private let descriptor: Int32
    private let name: String
    private var buffer: [UInt8] = []
    private var place = 0
    private var isOver = false
    /// Of the next line.
    private(set) var offset: Int
    private(set) var number: Int
    /// Of all before `offset`.
    private(set) var digest = SHA256()

    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    private static let chunk = 1 << 20
    /// Longer lines are no persons, and not kept.
    private static let longest = 4 << 20

    /// - Parameters:
    ///   - path: `-` for standard input.
    ///   - offset: what was read before; `line` is the number of the next line.
    init(path: String, from offset: Int = 0, line: Int = 1) throws {
        name = path == "-" ? "standard input" : path
        self.offset = offset
        number = line
        descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Problem(
                errno == EACCES ? .noRight : .usage, "\(path) cannot be read: \(String(cString: strerror(errno))).",
                "Nothing was sent. - reads standard input.")
        }
        var left = offset
        while left > 0 {
            let count = try read(atMost: min(left, Self.chunk))
            if count == 0 {
                throw Problem(
                    .usage, "\(name) is shorter than what was read of it before.", "Another --resume begins anew.")
            }
            digest.update(data: buffer)
            buffer.removeAll(keepingCapacity: true)
            left -= count
        }
    }

    /// Without its line feed; `nil` at the end.
    mutating func next() throws -> Line? {
        var searched = place
        while true {
            if let feed = lineFeed(from: searched) { return take(to: feed, feed + 1) }
            searched = buffer.count
            if isOver { return place < buffer.count ? take(to: buffer.count, buffer.count) : nil }
            guard buffer.count - place <= Self.longest else {
                throw Problem(
                    .usage, "line \(number) of \(name) has more than \(Self.longest >> 20) MiB.",
                    "Each line is one person.")
            }
            searched -= place
            buffer.removeSubrange(..<place)
            place = 0
            isOver = try read(atMost: Self.chunk) == 0
        }
    }

    private func lineFeed(from start: Int) -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let all = bytes.baseAddress, start < bytes.count,
                let found = memchr(all + start, Int32(UInt8(ascii: "\n")), bytes.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - all
        }
    }

    private mutating func take(to end: Int, _ next: Int) -> Line {
        var bytes = Array(buffer[place..<end])
        if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
        // Windows begins files with one.
        if offset == 0, bytes.starts(with: Self.byteOrderMark) { bytes.removeFirst(Self.byteOrderMark.count) }
        buffer.withUnsafeBytes { digest.update(bufferPointer: UnsafeRawBufferPointer(rebasing: $0[place..<next])) }
        let line = Line(bytes: bytes, number: number, start: offset, end: offset + next - place, digest: digest)
        (offset, number, place) = (line.end, number + 1, next)
        return line
    }

    private mutating func read(atMost count: Int) throws -> Int {
        let present = buffer.count
        buffer.append(contentsOf: repeatElement(0, count: count))
        var got = 0
        repeat {
            got = buffer.withUnsafeMutableBytes { bytes in
                Glibc.read(descriptor, bytes.baseAddress.map { $0 + present }, count)
            }
        } while got < 0 && errno == EINTR
        buffer.removeLast(count - max(0, got))
        guard got >= 0 else {
            throw Problem(
                .usage, "\(name) cannot be read: \(String(cString: strerror(errno))).", "The same line goes on later.")
        }
        return got
    }

    func close() { if descriptor != STDIN_FILENO { Glibc.close(descriptor) } }
}

/// JSON lines: an object with `userId` is a user, one with `mpid` a profile. Empty lines are passed over, and so is what an
/// errors file added.
struct JSONLinesReader: ImportReader {
    /// The member that says in an errors file why the line was refused.
    static let errorMember = "importError"

    private var lines: LineReader

    init(_ lines: LineReader) { self.lines = lines }

    mutating func next() throws -> ImportItem? {
        while let line = try lines.next() {
            if line.bytes.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) { continue }
            return Self.item(line)
        }
        return nil
    }

    private static func item(_ line: LineReader.Line) -> ImportItem {
        var item = ImportItem(
            original: .json(line.bytes), line: line.number, nextLine: line.number + 1, start: line.start, end: line.end,
            digest: line.digest)
        guard line.bytes.count <= ImportItem.mostBytes else {
            item.problem = "more than \(ImportItem.mostBytes >> 10) KiB"
            return item
        }
        do {
            guard case .object(var object) = try JSONValue(parsing: line.bytes) else {
                item.problem = "no JSON object"
                return item
            }
            object[errorMember] = nil
            item.data = .object(object)
            switch (object["userId"], object["mpid"]) {
            case (.some, nil): item.kind = .users
            case (nil, .some): item.kind = .profiles
            default: item.problem = "neither a user with userId nor a profile with mpid"
            }
        } catch {
            item.problem = "no JSON: \(error)"
        }
        return item
    }
}
