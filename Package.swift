// swift-tools-version: 6.2
// Why each dependency is here: docs/dependencies.md.
import PackageDescription

let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "IdentityBus",
    products: [
        .executable(name: "identitybus", targets: ["CLI"]),
        .executable(name: "identitybus-link", targets: ["LinkMain"]),
        .executable(name: "identitybus-user", targets: ["UserMain"]),
        .executable(name: "identitybus-sync", targets: ["SyncMain"]),
        .executable(name: "identitybus-verification", targets: ["VerificationMain"]),
        .executable(name: "identitybus-gateway", targets: ["GatewayMain"]),
        // What Benchmarks/ measures; not an API for others.
        .library(name: "Apps", targets: ["Apps"]),
        .library(name: "Contracts", targets: ["Contracts"]),
        .library(name: "Messaging", targets: ["Messaging"]),
        .library(name: "Runtime", targets: ["Runtime"]),
        .library(name: "Storage", targets: ["Storage"]),
        .library(name: "Verification", targets: ["Verification"]),
        .library(name: "WireJSON", targets: ["WireJSON"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        // Shared
        .systemLibrary(
            name: "CLibrdkafka", path: "Shared/CLibrdkafka", pkgConfig: "rdkafka",
            providers: [.apt(["librdkafka-dev"])]),
        .systemLibrary(
            name: "CLibpq", path: "Shared/CLibpq", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CZlib", path: "Shared/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(name: "WireJSON", path: "Shared/WireJSON", swiftSettings: strict),
        .target(
            name: "Contracts",
            dependencies: ["WireJSON", .product(name: "Crypto", package: "swift-crypto")],
            path: "Shared/Contracts", swiftSettings: strict),
        .target(
            name: "Messaging",
            dependencies: [
                "CLibrdkafka", "Contracts",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
            ],
            path: "Shared/Messaging", swiftSettings: strict),
        .target(
            name: "Storage",
            dependencies: [
                "CLibpq", "Contracts", "WireJSON",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Shared/Storage", swiftSettings: strict),
        .target(
            name: "Observability",
            dependencies: [
                "Contracts",
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            path: "Shared/Observability", swiftSettings: strict),
        .target(
            name: "Apps",
            dependencies: [
                "Contracts", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Yams", package: "Yams"),
            ],
            path: "Shared/Apps", swiftSettings: strict),
        .target(
            name: "Runtime",
            dependencies: [
                "Apps", "Contracts", "Messaging", "Observability", "Storage", "WireJSON",
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
            ],
            path: "Shared/Runtime", swiftSettings: strict),

        // Services
        .target(
            name: "Link",
            dependencies: ["Contracts", "Runtime", "Storage", "WireJSON"], path: "Services/Link", exclude: ["Main"],
            swiftSettings: strict),
        .executableTarget(
            name: "LinkMain", dependencies: ["Link", "Runtime"], path: "Services/Link/Main",
            swiftSettings: strict),
        .target(
            name: "User",
            dependencies: [
                "Apps", "Contracts", "Runtime", "Storage", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Services/User", exclude: ["Main"], swiftSettings: strict),
        .executableTarget(
            name: "UserMain", dependencies: ["User", "Runtime"], path: "Services/User/Main",
            swiftSettings: strict),
        .target(
            name: "Sync",
            dependencies: [
                "Apps", "Contracts", "Runtime", "Storage", "WireJSON", .product(name: "Metrics", package: "swift-metrics"),
            ],
            path: "Services/Sync", exclude: ["Main"], swiftSettings: strict),
        .executableTarget(
            name: "SyncMain", dependencies: ["Sync", "Runtime"], path: "Services/Sync/Main",
            swiftSettings: strict),
        .target(
            name: "Verification",
            dependencies: [
                "Apps", "Contracts", "Runtime", "Storage", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Services/Verification", exclude: ["Main"], swiftSettings: strict),
        .executableTarget(
            name: "VerificationMain", dependencies: ["Verification", "Runtime"], path: "Services/Verification/Main",
            swiftSettings: strict),
        .target(
            name: "Gateway",
            dependencies: [
                "Apps", "CZlib", "Contracts", "Messaging", "Observability", "Runtime", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdTLS", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            path: "Services/Gateway", exclude: ["Main"], swiftSettings: strict),
        .executableTarget(
            name: "GatewayMain", dependencies: ["Gateway"], path: "Services/Gateway/Main", swiftSettings: strict),
        .executableTarget(
            name: "CLI",
            dependencies: [
                "Apps", "Contracts", "Messaging", "Observability", "Runtime", "Storage", "Verification", "WireJSON",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Services/CLI", swiftSettings: strict),

        // Tests mirror the folders above; Tests/EndToEnd is Python (docs/decisions/0006).
        .target(
            name: "TestKit",
            dependencies: ["Apps", "Runtime", "Storage", .product(name: "Logging", package: "swift-log")],
            path: "Tests/TestKit", swiftSettings: strict),
        .testTarget(name: "WireJSONTests", dependencies: ["TestKit", "WireJSON"], path: "Tests/WireJSONTests"),
        .testTarget(
            name: "MessagingTests",
            dependencies: [
                "CLibrdkafka", "Contracts", "Messaging",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "MetricsTestKit", package: "swift-metrics"),
            ],
            path: "Tests/MessagingTests", swiftSettings: strict),
        .testTarget(
            name: "StorageTests",
            dependencies: [
                "Contracts", "Storage", "TestKit",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/StorageTests", swiftSettings: strict),
        .testTarget(
            name: "ObservabilityTests",
            dependencies: [
                "Observability", "TestKit",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ],
            path: "Tests/ObservabilityTests", swiftSettings: strict),
        .testTarget(
            name: "ContractsTests",
            dependencies: ["Contracts", "TestKit", "WireJSON", .product(name: "Crypto", package: "swift-crypto")],
            path: "Tests/ContractsTests", resources: [.copy("Golden")], swiftSettings: strict),
        .testTarget(
            name: "AppsTests",
            dependencies: [
                "Apps", "Contracts", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/AppsTests", swiftSettings: strict),
        .testTarget(
            name: "RuntimeTests",
            dependencies: [
                "Apps", "Contracts", "Messaging", "Observability", "Runtime", "Storage", "TestKit", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/RuntimeTests", swiftSettings: strict),
        .testTarget(
            name: "LinkTests",
            dependencies: [
                "Apps", "Contracts", "Link", "Messaging", "Runtime", "Storage", "TestKit", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/LinkTests", swiftSettings: strict),
        .testTarget(
            name: "UserTests",
            dependencies: [
                "Apps", "Contracts", "Link", "Messaging", "Runtime", "Storage", "TestKit", "User", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/UserTests", swiftSettings: strict),
        .testTarget(
            name: "SyncTests",
            dependencies: [
                "Apps", "Contracts", "Messaging", "Runtime", "Storage", "Sync", "TestKit", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/SyncTests", swiftSettings: strict),
        .testTarget(
            name: "VerificationTests",
            dependencies: [
                "Apps", "Contracts", "Messaging", "Runtime", "Storage", "TestKit", "Verification", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/VerificationTests", swiftSettings: strict),
        .testTarget(
            name: "GatewayTests",
            dependencies: [
                "Apps", "Contracts", "Gateway", "Messaging", "Runtime", "WireJSON",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/GatewayTests", swiftSettings: strict),
        .testTarget(
            name: "CLITests", dependencies: ["CLI", "Contracts", "Messaging", "WireJSON"], path: "Tests/CLITests",
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)
