// SPDX-License-Identifier: Apache-2.0

/// The part of the work that a function belongs to.
enum ProfileGroup: String {
    case json = "JSON"
    case crypto = "crypto"
    case sqlite = "SQLite"
    case postgresql = "libpq"
    case kafka = "librdkafka"
    case compression = "compression"
    case runtime = "Swift runtime"
    case foundation = "Foundation"
    case memory = "memory"
    case kernel = "kernel"
    case storage = "Storage"
    case messaging = "Messaging"
    case contracts = "Contracts"
    case loop = "Runtime (the loop)"
    case service = "the service itself"
    case library = "Swift library"
    case other = "other"

    init(_ entry: Profile.Entry) {
        self = Self.byObject(entry.object, entry.symbol) ?? Self.bySymbol(entry.symbol)
    }

    private static func byObject(_ object: String, _ symbol: String) -> ProfileGroup? {
        let objects: [(String, ProfileGroup)] = [
            ("sqlite", .sqlite), ("libpq", .postgresql), ("rdkafka", .kafka), ("zstd", .compression),
            ("lz4", .compression), ("crypto", .crypto), ("Foundation", .foundation), ("kernel", .kernel),
        ]
        if let known = objects.first(where: { object.contains($0.0) }) { return known.1 }
        if object.contains("libc.so") || object.contains("ld-linux") {
            let allocation = ["alloc", "free", "mem", "_int_"]
            return allocation.contains { symbol.contains($0) } ? .memory : .other
        }
        if object.contains("libswiftCore") {
            return symbol.hasPrefix("swift_") || symbol.hasPrefix("_swift") ? .runtime : .library
        }
        return nil
    }

    private static func bySymbol(_ symbol: String) -> ProfileGroup {
        if symbol.hasPrefix("CCryptoBoringSSL") || symbol.contains("sha256") || symbol.contains("sha1") {
            return .crypto
        }
        if symbol.hasPrefix("swift_") || symbol.hasPrefix("_swift") || symbol.contains("swift::") { return .runtime }
        if symbol.hasPrefix("sqlite3") { return .sqlite }
        let modules: [(String, ProfileGroup)] = [
            ("8WireJSON", .json), ("6Crypto", .crypto), ("7Storage", .storage), ("4GRDB", .sqlite),
            ("9Messaging", .messaging), ("9Contracts", .contracts), ("7Runtime", .loop), ("4Link", .service),
            ("4User", .service),
            ("4Sync", .service), ("12Verification", .service),
            ("10Foundation", .foundation), ("20FoundationEssentials", .foundation),
        ]
        // The module that comes first in a mangled name owns the function.
        let found = modules.compactMap { name, group in
            symbol.firstRange(of: name).map { ($0.lowerBound, group) }
        }
        if let first = found.min(by: { $0.0 < $1.0 }) { return first.1 }
        return symbol.hasPrefix("$sS") || symbol.hasPrefix("$ss") ? .library : .other
    }
}
