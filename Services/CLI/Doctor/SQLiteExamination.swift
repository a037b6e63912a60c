// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Glibc
import Runtime
import Storage
import Supervision

/// Looks at the services' SQLite files beside the services, and writes nothing.
struct SQLiteExamination: Sendable {
    let folder: String
    let services: [any CommandService.Type]
    /// Whether services migrate at their start.
    let migrate: MigrationTime

    /// Bytes of a disk below which somebody should know.
    private static let littleRoom: UInt64 = 200 << 20

    func run() -> [Finding] { timed { stores() } + timed { [room()] } }

    private func stores() -> [Finding] {
        guard access(folder, F_OK) == 0 else {
            // Where it is to be made.
            let parent = nearestFolder
            guard access("\(parent)/.", W_OK) == 0 else {
                return [unusable(folder, "cannot be made: \(Self.words(errno))")]
                    .skippingRest(of: .sqlite, needs: "the folder", but: [.fileRoom])
            }
            let absent = Finding.ok(
                .fileStore, "\(folder) is not there yet; services make it at their start", subject: folder)
            return summary(of: [], [absent] + missing(services))
        }
        guard access("\(folder)/.", R_OK | W_OK | X_OK) == 0 else {
            return [unusable(folder, "cannot be used: \(Self.words(errno))")]
                .skippingRest(of: .sqlite, needs: "the folder", but: [.fileRoom])
        }
        var found: [Finding] = []
        var stores: [String] = []
        for service in services {
            let path = "\(folder)/\(service.name).sqlite"
            guard access(path, F_OK) == 0 else {
                continue
            }
            guard access(path, R_OK | W_OK) == 0 else {
                found.append(unusable(path, "cannot be used: \(Self.words(errno))"))
                continue
            }
            stores.append(service.name)
            found.append(schema(of: service, at: path))
        }
        let absent = services.filter { access("\(folder)/\($0.name).sqlite", F_OK) != 0 }
        return summary(of: stores, found + missing(absent))
    }

    private func summary(of stores: [String], _ found: [Finding]) -> [Finding] {
        var found = found
        if !found.contains(where: { $0.id == .fileStore }) {
            let words =
                stores.isEmpty
                ? "\(folder) has no store yet; services make it at their start"
                : "\(folder): \(stores.joined(separator: ", "))"
            found.insert(.ok(.fileStore, words, subject: folder), at: 0)
        }
        let schemas = found.filter { $0.id == .fileSchema && $0.level == .ok }
        found.removeAll { $0.id == .fileSchema && $0.level == .ok }
        if !schemas.isEmpty {
            found.append(.ok(.fileSchema, "at " + schemas.map(\.message).joined(separator: ", "), subject: folder))
        }
        return found.contains { $0.id == .fileSchema } ? found : found + [.skip(.fileSchema, needs: "a store")]
    }

    private func unusable(_ path: String, _ words: String) -> Finding {
        .fail(
            .fileStore, "\(path) \(words)", subject: path,
            fix: "DATA_DIR, or --data-dir, names a folder that the services may write.")
    }

    private func schema(of service: any CommandService.Type, at path: String) -> Finding {
        do {
            let reader = try StoreReader(service: service.name, file: path)
            let tables = try reader.query("SELECT name FROM sqlite_master WHERE type = 'table'", []).map {
                try $0.text(0)
            }
            // One that a service was about to make.
            guard tables.contains("migrations") else {
                return behind(service, "is empty", path, cause: "missing")
            }
            let rows = try reader.query("SELECT \(Migrator.columns) FROM migrations", [])
            if try service.migrator.missing(after: rows).isEmpty {
                let missing = service.migrator.tables.filter { !tables.contains($0) }.map { "\(path): the table \($0)" }
                if let lost = SchemaExamination.tableMissing(.fileSchema, missing, subject: path) { return lost }
                let flaws = try service.migrator.flaws(.sqlite) { try reader.query($0, []) }
                return !flaws.isEmpty
                    ? SchemaExamination.changed(.fileSchema, path, ClusterExamination.list(flaws), subject: path)
                    : .ok(.fileSchema, "\(service.name) \(service.migrator.newest)", subject: path)
            }
            return behind(service, "is at migration \(try rows.map { try $0.integer(0) }.max() ?? 0)", path)
        } catch let mismatch as SchemaMismatch {
            return .fail(
                .fileSchema, "\(path): \(mismatch)", subject: path, fix: SchemaExamination.otherVersion,
                cause: "other-version")
        } catch {
            let problem = Problem(error)
            var finding = Finding.fail(.fileSchema, problem.what, subject: path, cause: "unreadable")
            finding.fix = problem.advice
            return finding
        }
    }

    /// Stores that are not there. A service makes its own, unless it is not to.
    private func missing(_ services: [any CommandService.Type]) -> [Finding] {
        if services.isEmpty { return [] }
        if migrate == .start {
            let names = services.map { $0.name }.joined(separator: ", ")
            return [
                .warn(
                    .fileSchema, "\(folder): not there yet: \(names); services make their stores at their start",
                    subject: folder, cause: "missing")
            ]
        }
        return services.map { service in
            let path = "\(folder)/\(service.name).sqlite"
            return .fail(
                .fileSchema, "\(path) is not there yet, and MIGRATE=never keeps the service from making it",
                subject: path, fix: "Start the \(service.name) service once with MIGRATE=start.", cause: "missing")
        }
    }

    /// A store that lacks migrations.
    private func behind(_ service: any CommandService.Type, _ state: String, _ path: String, cause: String = "older")
        -> Finding
    {
        let words = "\(path) \(state), this code wants \(service.migrator.newest)"
        guard migrate == .never else {
            return .warn(
                .fileSchema, "\(words); the service migrates it at its start", subject: path, cause: cause)
        }
        return .fail(
            .fileSchema, "\(words), and MIGRATE=never keeps the service from migrating it", subject: path,
            fix: "Stop the service, and: identitybus migrate --service \(service.name)", cause: cause)
    }

    private func room() -> Finding {
        let place = nearestFolder
        var disk = statvfs()
        guard statvfs(place, &disk) == 0 else {
            return .warn(.fileRoom, "\(place): \(Self.words(errno))", subject: place)
        }
        let free = UInt64(disk.f_bavail) * UInt64(disk.f_frsize)
        let words = "\(free >> 20) MiB free on the disk of \(place)"
        if SQLiteDatabase.isFull(free) {
            return .fail(.fileRoom, words, subject: place, fix: "Without room nothing is decided: free some.")
        }
        return free < Self.littleRoom ? .warn(.fileRoom, words, subject: place) : .ok(.fileRoom, words, subject: place)
    }

    /// The folder, or the one above it that is there; or a link on the way that leads nowhere, where none can be made.
    private var nearestFolder: String {
        var place = URL(filePath: folder).standardizedFileURL
        var status = stat()
        while place.path != "/", lstat(place.path, &status) != 0 { place = place.deletingLastPathComponent() }
        return place.path
    }

    private static func words(_ number: Int32) -> String { String(cString: strerror(number)).lowercased() }
}
