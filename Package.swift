// swift-tools-version: 6.2
// Why each dependency is here: docs/dependencies.md.
import PackageDescription

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let grdbSQLite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let hummingbirdTLS = Target.Dependency.product(name: "HummingbirdTLS", package: "hummingbird")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let metrics = Target.Dependency.product(name: "Metrics", package: "swift-metrics")
let metricsTestKit = Target.Dependency.product(name: "MetricsTestKit", package: "swift-metrics")
let serviceLifecycle = Target.Dependency.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let tracing = Target.Dependency.product(name: "Tracing", package: "swift-distributed-tracing")
let unixSignals = Target.Dependency.product(name: "UnixSignals", package: "swift-service-lifecycle")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")

/// For scripts/fuzz alone: where libFuzzer is. Everything of ours is then built so that it sees what an input reaches.
let fuzzer = Context.environment["IDENTITYBUS_LIBFUZZER"]

let strict: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .treatAllWarnings(as: .error),
    ] + (fuzzer == nil ? [] : [.unsafeFlags(["-sanitize=fuzzer", "-enable-testing"])])

/// Debug builds of what the tests spend most of their time in are optimised too: WireJSON, Contracts and Storage take 37 s
/// of CPU more to build, and the simulation takes less than half of its time (docs/performance.md, "What was tried"). The
/// embedded broker, not optimised, was a fifth of what the end-to-end tests computed.
let optimized: [SwiftSetting] = [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// A library of the system: a module map in Shared.
func system(_ name: String, pkgConfig: String, apt package: String) -> Target {
    .systemLibrary(
        name: name, path: "Shared/\(name)", pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// What several services use: Shared/<name>.
func shared(_ name: String, _ dependencies: [Target.Dependency], _ settings: [SwiftSetting] = []) -> Target {
    .target(name: name, dependencies: dependencies, path: "Shared/\(name)", swiftSettings: strict + settings)
}

/// A service: Services/<name>, which tests can import, and its process in Main.
func service(_ name: String, _ dependencies: [Target.Dependency], without others: [String] = []) -> [Target] {
    let path = "Services/\(name)"
    return [
        .target(
            name: name, dependencies: ["Apps", "Contracts", "Runtime"] + dependencies, path: path,
            exclude: ["Main"] + others, swiftSettings: strict),
        .executableTarget(
            name: "\(name)Main", dependencies: [.byName(name: name), "Runtime"], path: "\(path)/Main",
            swiftSettings: strict),
    ]
}

/// The tests of one of the above: Tests/<name>Tests.
func tests(_ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = []) -> Target {
    .testTarget(
        name: "\(name)Tests", dependencies: [.byName(name: name)] + dependencies, path: "Tests/\(name)Tests",
        resources: resources, swiftSettings: strict)
}

/// The services with a store of their own. scripts/generate makes the command line's list of them from this one.
let services = ["Link", "User", "Sync", "Verification"]

/// The tests of parsers: a program that looks for inputs, when it is asked for, or what was found.
func fuzzing(_ dependencies: [Target.Dependency]) -> [Target] {
    let path = "Tests/FuzzTests"
    guard let fuzzer else {
        return [
            .testTarget(
                name: "FuzzTests", dependencies: dependencies, path: path,
                exclude: ["CLibFuzzer", "Corpus", "Main"], swiftSettings: strict)
        ]
    }
    return [
        .systemLibrary(name: "CLibFuzzer", path: "\(path)/CLibFuzzer"),
        .executableTarget(
            name: "fuzz", dependencies: dependencies + ["CLibFuzzer"], path: path,
            exclude: ["CLibFuzzer", "Corpus", "CorpusTests.swift"], swiftSettings: strict,
            linkerSettings: [.unsafeFlags([fuzzer, "-lstdc++"])]),
    ]
}

/// What the tests of the services need.
let running: [Target.Dependency] = ["Apps", "Contracts", "Runtime", "Storage", "TestKit", "WireJSON", crypto]

let package = Package(
    name: "IdentityBus",
    products: [
        .executable(name: "identitybus", targets: ["CLI", "BuildRecord"])
    ]
        + (services + ["Gateway"]).map {
            .executable(name: "identitybus-\($0.lowercased())", targets: ["\($0)Main", "BuildRecord"])
        } + [.executable(name: "identitybus-bench", targets: ["Bench"])],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-distributed-tracing.git", from: "1.4.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        // Without swift-configuration, which it would build for its own settings.
        .package(
            url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: ["FullFoundation"]),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        system("CLibrdkafka", pkgConfig: "rdkafka", apt: "librdkafka-dev"),
        system("CLibpq", pkgConfig: "libpq", apt: "libpq-dev"),
        .systemLibrary(name: "CLibssl", path: "Shared/CLibssl"),
        .systemLibrary(name: "CMalloc", path: "Shared/CMalloc"),
        system("CZlib", pkgConfig: "zlib", apt: "zlib1g-dev"),
        system("CZstd", pkgConfig: "libzstd", apt: "libzstd-dev"),

        shared("WireJSON", [], optimized),
        shared("Contracts", ["WireJSON", crypto], optimized),
        shared("Messaging", ["CLibrdkafka", "Contracts", "WireJSON", logging, metrics]),
        shared("EmbeddedBroker", ["CLibrdkafka", "Contracts", "Messaging", logging], optimized),
        shared("Storage", ["CLibpq", "Contracts", "WireJSON", crypto, grdb, grdbSQLite, logging], optimized),
        // Which commit is built. The plugin has it written before each build. Executables link it and nothing imports it, so
        // that a new commit makes the compiler go over this module alone.
        .target(
            name: "BuildRecord", path: "Shared/BuildRecord", exclude: ["archive.txt", "record.sh"],
            swiftSettings: strict, plugins: [.plugin(name: "RecordBuild")]),
        .plugin(name: "RecordBuild", capability: .buildTool(), path: "Plugins/RecordBuild"),
        .target(name: "CBuild", path: "Shared/CBuild"),
        shared(
            "Observability",
            ["CBuild", "CLibssl", "Contracts", hummingbird, logging, metrics, serviceLifecycle, tracing]),
        shared("Apps", ["Contracts", "WireJSON", crypto, logging, yams]),
        // Facts in words, for the command line and the console.
        shared("Explanation", ["Contracts", "WireJSON"]),
        shared(
            "Runtime",
            [
                "Apps", "CMalloc", "CZstd", "Contracts", "Messaging", "Observability", "Storage", "WireJSON",
                crypto, logging, metrics, serviceLifecycle, tracing, unixSignals,
            ], optimized),

        .executableTarget(
            name: "CLI",
            dependencies: services.map { .byName(name: $0) } + [
                "Gateway", "Apps", "Chaos", "Contracts", "EmbeddedBroker", "Explanation", "Messaging", "Observability",
                "Runtime", "Storage",
                "Supervision", "WireJSON", argumentParser, crypto, grdb, logging,
            ],
            path: "Services/CLI", exclude: ["Chaos", "Supervision"], swiftSettings: strict),
        // What all commands share: services as child processes, what is said and how a command ends.
        .target(
            name: "Supervision",
            dependencies: services.map { .byName(name: $0) } + [
                "Apps", "Contracts", "Explanation", "Messaging", "Observability", "Runtime", "Storage", "WireJSON",
                argumentParser, crypto, logging,
            ],
            path: "Services/CLI/Supervision", swiftSettings: strict),
        // `identitybus chaos`.
        .target(
            name: "Chaos",
            dependencies: [
                "Apps", "Contracts", "EmbeddedBroker", "Messaging", "Observability", "Runtime", "Storage",
                "Supervision", "WireJSON", argumentParser, crypto, logging,
            ],
            path: "Services/CLI/Chaos", swiftSettings: strict),

        // What scripts/bench runs. Measures the services as processes, so it links none but for a function of one.
        .executableTarget(
            name: "Bench",
            dependencies: [
                "Apps", "Contracts", "EmbeddedBroker", "Messaging", "Runtime", "Storage", "Verification",
                "WireJSON", argumentParser, crypto, logging,
            ],
            path: "Benchmarks/Bench", swiftSettings: strict),

        // Tests mirror the folders above; Tests/EndToEnd is Python (docs/decisions/0006).
        .target(
            name: "TestKit", dependencies: ["Apps", "Contracts", "Runtime", "Storage", "WireJSON", logging],
            path: "Tests/TestKit", swiftSettings: strict),
        // docs/simulation.md.
        .target(
            name: "Simulation",
            dependencies: running + ["Link", "Messaging", "Sync", "User", "Verification", logging],
            path: "Tests/Simulation", exclude: ["Main"], swiftSettings: strict + optimized),
        .executableTarget(
            name: "simulate", dependencies: ["Simulation", argumentParser], path: "Tests/Simulation/Main",
            swiftSettings: strict),
        tests("Simulation", ["Contracts", "Messaging", "Storage", "TestKit", "WireJSON"]),
        tests("WireJSON", ["TestKit"]),
        tests("Contracts", ["Runtime", "Supervision", "TestKit", "WireJSON", crypto], resources: [.copy("Golden")]),
        // A broker for one test, and who waits for it.
        .target(
            name: "MessagingTestKit",
            dependencies: ["CLibrdkafka", "Contracts", "EmbeddedBroker", "Messaging", logging],
            path: "Tests/MessagingTestKit", swiftSettings: strict),
        tests(
            "Messaging",
            ["CLibrdkafka", "Contracts", "EmbeddedBroker", "MessagingTestKit", logging, metrics, metricsTestKit]),
        tests("EmbeddedBroker", ["Contracts", "Messaging", "MessagingTestKit", "TestKit"]),
        tests("Storage", ["Contracts", "TestKit", grdb, logging]),
        tests("Observability", ["Contracts", "TestKit", logging, metrics, serviceLifecycle, tracing]),
        tests("Apps", ["Contracts", "MessagingTestKit", "TestKit", "WireJSON", crypto, logging]),
        tests(
            "Runtime",
            [
                "Apps", "Contracts", "EmbeddedBroker", "Messaging", "MessagingTestKit", "Observability", "Storage",
                "TestKit", "WireJSON", crypto, logging, tracing,
            ]),
        tests("Explanation", ["Contracts", "WireJSON"]),
        tests("Link", running),
        tests("User", running + ["Link"]),
        tests("Sync", running),
        tests("Verification", running + ["Sync"]),
        tests(
            "Gateway",
            ["Apps", "Contracts", "Messaging", "Observability", "Runtime", "WireJSON", crypto, logging, tracing]),
        tests(
            "CLI",
            [
                "Apps", "Contracts", "EmbeddedBroker", "Messaging", "Runtime", "Storage", "Supervision", "TestKit",
                "WireJSON", argumentParser, crypto,
            ]),
        tests("Chaos", ["Contracts", "WireJSON"]),
    ]
        + fuzzing(running + services.map { .byName(name: $0) } + ["Gateway", "Messaging", "Observability"])
        + service("Link", ["Storage", logging, metrics])
        + service("User", ["Storage", crypto])
        + service("Sync", ["Storage", "WireJSON", metrics])
        + service("Verification", ["Storage", "WireJSON", crypto, metrics])
        + service(
            "Gateway",
            [
                "CZlib", "Explanation", "Messaging", "Observability", "WireJSON", crypto, hummingbird, hummingbirdTLS,
                logging, metrics, serviceLifecycle, tracing,
            ],
            // Its files are compiled in by scripts/generate.
            without: ["Console"]),
    swiftLanguageModes: [.v6]
)
