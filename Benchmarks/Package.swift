// swift-tools-version: 6.2
// A package of its own, so that the product does not depend on what only measuring needs. scripts/bench builds it.
import PackageDescription

let package = Package(
    name: "Benchmarks",
    products: [
        .executable(name: "identitybus-bench", targets: ["Bench"]),
        .executable(name: "identitybus-counts", targets: ["Counts"]),
    ],
    dependencies: [
        .package(name: "IdentityBus", path: ".."),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
    ],
    targets: [
        .target(name: "CAllocations"),
        .executableTarget(
            name: "Counts",
            dependencies: [
                "CAllocations",
                .product(name: "Apps", package: "IdentityBus"),
                .product(name: "Contracts", package: "IdentityBus"),
                .product(name: "Link", package: "IdentityBus"),
                .product(name: "Messaging", package: "IdentityBus"),
                .product(name: "Runtime", package: "IdentityBus"),
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .treatAllWarnings(as: .error),
            ]),
        .executableTarget(
            name: "Bench",
            dependencies: [
                .product(name: "Contracts", package: "IdentityBus"),
                .product(name: "Messaging", package: "IdentityBus"),
                .product(name: "Runtime", package: "IdentityBus"),
                .product(name: "Storage", package: "IdentityBus"),
                .product(name: "Verification", package: "IdentityBus"),
                .product(name: "WireJSON", package: "IdentityBus"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .treatAllWarnings(as: .error),
            ]),
    ],
    swiftLanguageModes: [.v6]
)
