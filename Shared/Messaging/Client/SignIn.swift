// SPDX-License-Identifier: Apache-2.0

import CLibrdkafka
import Contracts
import Glibc
import Synchronization
import WireJSON

/// The password of a client, where a file holds it: a secret that is mounted changes while the client runs.
///
/// Confined to the thread that polls the client.
struct PasswordFile {
    let path: String
    private let username: String
    /// What the client signs in with.
    private(set) var password: String
    private var version: FileVersion?
    private var next = ContinuousClock.now

    private static let pause: Duration = .seconds(1)

    /// Of a client that is about to be made. The process may have read its settings long ago; what the file held then counts
    /// only if it cannot be read now.
    init(path: String, _ settings: [ClientSetting]) {
        func value(_ key: String) -> String { settings.last { $0.key == key }?.value ?? "" }
        self.path = path
        username = value("sasl.username")
        let found = FileVersion(of: path)
        if let now = try? TextFile.secret(path).withoutFinalNewlines {
            password = now
            // Where the file has changed and no client has seen it, this one is to tell.
            version = Self.known(now, of: path) == now ? found : nil
        } else {
            password = value("sasl.password")
        }
    }

    enum Change: Equatable {
        case password(String)
        /// Why the file that has changed cannot be read: what it held before goes on being used.
        case problem(String)
    }

    /// What the file holds now, once after each change of that. Looks at most once a second.
    mutating func look(now: ContinuousClock.Instant = .now) -> Change? {
        guard now >= next else { return nil }
        next = now.advanced(by: Self.pause)
        let found = FileVersion(of: path)
        guard found != version else { return nil }
        version = found
        do {
            let now = try TextFile.secret(path).withoutFinalNewlines
            guard now != password || Self.known(now, of: path) != now else { return nil }
            password = now
            return .password(now)
        } catch {
            return .problem("\(error)")
        }
    }

    /// What was told last of each file, and the password that the process began with is told: all its clients look at the
    /// same files.
    private struct Told {
        var passwords: [String: String] = [:]
        var problems: [String: FileVersion?] = [:]
    }

    private static let told = Mutex(Told())

    /// The password that was told last.
    /// - Parameter first: which it is where none was.
    private static func known(_ first: String, of path: String) -> String {
        told.withLock { told in
            let known = told.passwords[path] ?? first
            told.passwords[path] = known
            return known
        }
    }

    /// Whether nobody in this process has told of the change that was found last. True once for each.
    func isNews(_ change: Change) -> Bool {
        Self.told.withLock { told in
            switch change {
            case .password(let password):
                defer { told.passwords[path] = password }
                return told.passwords[path] != password
            case .problem:
                if let last = told.problems[path], last == version { return false }
                told.problems[path] = .some(version)
                return true
            }
        }
    }

    /// Has the client sign in with it from its next connection on. Those that it has are not closed.
    func use(for client: OpaquePointer) {
        if let error = rd_kafka_sasl_set_credentials(client, username, password) { rd_kafka_error_destroy(error) }
    }
}

/// Which file stands at a path, and since when it holds what it holds.
private struct FileVersion: Equatable {
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    /// `nil` where there is none.
    init?(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        seconds = status.st_mtim.tv_sec
        nanoseconds = status.st_mtim.tv_nsec
    }
}

/// The file that holds the token of OAUTHBEARER. Somebody else writes it, and writes it anew before the token ends.
struct TokenFile: Sendable, Hashable {
    let path: String

    struct Token: Equatable {
        let text: String
        let end: Timestamp
        /// Whom it is for, as far as it says. Brokers read it in the token itself.
        let principal: String
    }

    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    /// How long a token counts that does not say when it ends: the file is read again after four fifths of that.
    private static let unknownLife: Int64 = 5 * 60_000

    /// - Throws: when the file cannot be read, holds nothing, or holds a token that has ended. What it holds is not shown.
    func read(now: Timestamp) throws(Problem) -> Token {
        let text: String
        do {
            text = try TextFile.secret(path).withoutFinalNewlines
        } catch {
            throw Problem(description: "\(error)")
        }
        guard !text.isEmpty else { throw Problem(description: "\(path) is empty") }
        let claims = Self.claims(of: text)
        let end = claims?["exp"]?.doubleValue.map { Timestamp(milliseconds: Int64(min($0, 1e12) * 1000)) }
        if let end, end <= now {
            throw Problem(description: "the token in \(path) has ended at \(end.rfc3339); nobody has written a new one")
        }
        return Token(
            text: text, end: end ?? Timestamp(milliseconds: now.milliseconds + Self.unknownLife),
            principal: claims?["sub"]?.stringValue ?? "identitybus")
    }

    /// What a JWT says. Its signature is the broker's to check.
    private static func claims(of token: String) -> JSONObject? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        return Base64.bytes(parts[1].utf8, .url).flatMap { try? JSONValue(parsing: $0).objectValue }
    }
}

extension TokenFile {
    /// Gives the client a token, or tells it that there is none: it asks again after ten seconds, and otherwise after four
    /// fifths of the token's life.
    /// - Returns: why there is none.
    func give(to client: OpaquePointer) -> String? {
        do {
            let token = try read(now: .now)
            var words = [CChar](repeating: 0, count: 512)
            let code = rd_kafka_oauthbearer_set_token(
                client, token.text, token.end.milliseconds, token.principal, nil, 0, &words, words.count)
            guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return nil }
            // What librdkafka says of a token that it does not take may quote it.
            return refuse("librdkafka does not take what \(path) holds as a token", client)
        } catch {
            return refuse(error.description, client)
        }
    }

    private func refuse(_ words: String, _ client: OpaquePointer) -> String {
        rd_kafka_oauthbearer_set_token_failure(client, words)
        return words
    }
}
