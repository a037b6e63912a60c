// SPDX-License-Identifier: Apache-2.0

import Contracts
import Crypto
import Foundation
public import Logging

/// The apps file on disk and the version of it that is in force. Confined to the loop's thread.
///
/// The file is read again whenever its bytes changed; an invalid new version is refused, ``problem`` says why, and the old
/// one stays in force (docs/operations.md).
public final class AppsSource {
    private let path: String
    private let extent: AppsFile.Extent
    private let keys: DeploymentKeys
    private let weakSecrets: WeakSecrets
    private let logger: Logger
    /// Of each file that it was read from the digest: the text may hold secrets that this process does not keep.
    private var files: [String: SHA256.Digest]
    private var lastProblem: String?
    /// Why the file as it is now is not in force; `nil` when it is.
    public var problem: String? { lastProblem }
    public private(set) var apps: AppDirectory

    /// Of the version in force: 32 hex characters that change when the file, or a secret file that it names, changes.
    public var digest: String {
        var hash = SHA256()
        for file in files.sorted(by: { $0.key < $1.key }) { hash.update(data: Array(file.value)) }
        return hash.finalize().prefix(16).map { byte in
            let digits = String(byte, radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }

    /// - Parameter keys: the deployment's; no app may have an internal key as a secret of its own. Who has only keys that
    ///   are derived from it (the gateway) sees that too.
    /// - Throws: `AppsFile.Problem` with the path in front; the service then does not start.
    public init(
        path: String, reading extent: AppsFile.Extent = .everything, keys: DeploymentKeys = .none,
        weakSecrets: WeakSecrets = .warn, logger: Logger
    ) throws(AppsFile.Problem) {
        self.path = path
        self.extent = extent
        self.weakSecrets = weakSecrets
        self.logger = logger
        self.keys = keys
        (apps, files) = try Self.load(path, extent, keys, weakSecrets)
    }

    /// Logs what the file's author should change. Not in the initializer: a process may read the file more than once
    /// before it is up.
    public func logWarnings() { logWarnings(besides: nil) }

    /// One line of each kind, and no warning for every restart: nothing fails, and who runs the deployment decided so.
    private func logWarnings(besides known: AppDirectory?) {
        for (text, event, kind) in [
            ("the apps file has weak secrets", "apps.weak-secrets", \AppDirectory.warnings),
            ("the apps file has what should not stay so", "apps.remarks", \AppDirectory.remarks),
        ] {
            let problems = apps[keyPath: kind].filter { known?[keyPath: kind].contains($0) != true }
            guard !problems.isEmpty else { continue }
            logger.notice(
                "\(text)", metadata: ["event": "\(event)", "problems": "\(problems.joined(separator: "; "))"])
        }
    }

    /// The problem with the file's path in front.
    public func named(_ problem: AppsFile.Problem) -> AppsFile.Problem { AppsFile.Problem("\(path): \(problem)") }

    /// Reads the file, and the secret files it names, again if any of them changed.
    /// - Returns: whether another version is in force now.
    public func reload() -> Bool {
        reload { _ in nil }
    }

    /// - Parameter refusal: why a version that is valid in itself may not come into force. Asked once more at each reload
    ///   until there is no reason. Where it throws, the previous version stays in force, and nothing is logged.
    public func reload<Failure: Error>(
        asking refusal: (AppDirectory) throws(Failure) -> AppsFile.Problem?
    ) throws(Failure) -> Bool {
        if lastProblem == nil, files.allSatisfy({ (try? TextFile.read($0.key)).map(Self.digest) == $0.value }) {
            return false
        }
        let (current, currentFiles): (AppDirectory, [String: SHA256.Digest])
        do {
            (current, currentFiles) = try Self.load(path, extent, keys, weakSecrets)
        } catch {
            refuse(error)
            return false
        }
        let isNew = currentFiles != files
        if isNew, let problem = try refusal(current) {
            refuse(named(problem))
            return false
        }
        let before = apps
        (apps, files, lastProblem) = (current, currentFiles, nil)
        if isNew {
            let ids = apps.ids.map(\.text).joined(separator: ",")
            logger.info(
                "apps file reloaded", metadata: ["event": "apps.reloaded", "path": "\(path)", "apps": "\(ids)"])
            logWarnings(besides: before)
        }
        return isNew
    }

    private func refuse(_ problem: AppsFile.Problem) {
        guard lastProblem != problem.description else { return }
        lastProblem = problem.description
        logger.debug("apps file refused; the previous version stays in force", metadata: ["problem": "\(problem)"])
    }

    /// The apps, and the digests of the files they were read from.
    private static func load(
        _ path: String, _ extent: AppsFile.Extent, _ keys: DeploymentKeys, _ weakSecrets: WeakSecrets
    ) throws(AppsFile.Problem) -> (AppDirectory, [String: SHA256.Digest]) {
        let text: String
        do {
            text = try TextFile.read(path)
        } catch {
            let way = error.place == nil ? "set IDENTITYBUS_APPS to the apps file" : "save it as UTF-8"
            throw AppsFile.Problem("\(path): cannot be read: \(error); \(way)")
        }
        var files = [path: digest(text)]
        do {
            let apps = try AppsFile.parse(
                text, reading: extent, weakSecrets: weakSecrets, keys: keys
            ) { file in
                let secretPath = secretPath(file, besides: path)
                let secret = try TextFile.secret(secretPath)
                files[secretPath] = digest(secret)
                return secret
            }
            return (apps, files)
        } catch {
            throw AppsFile.Problem("\(path): \(error)")
        }
    }

    /// Where a secret file is that an apps file names.
    static func secretPath(_ file: String, besides apps: String) -> String {
        file.hasPrefix("/") ? file : URL(filePath: apps).deletingLastPathComponent().appending(path: file).path
    }

    private static func digest(_ text: String) -> SHA256.Digest { SHA256.hash(data: Array(text.utf8)) }
}
