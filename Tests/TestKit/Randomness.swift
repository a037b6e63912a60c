// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A small generator whose sequence depends on nothing but its seed.
public struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    public init(seed: UInt64) {
        state = seed
    }

    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

/// Draws from a generator that its seed decides.
public protocol RandomSource {
    var random: SplitMix64 { get set }
}

extension RandomSource {
    public mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    /// - Parameter values: at least one.
    public mutating func pick<Value>(_ values: [Value]) -> Value {
        values[Int.random(in: values.indices, using: &random)]
    }
}

/// The seed of this run's random tests: `TEST_SEED` to repeat a run, else another one every time. It is printed when the
/// first test asks for it.
public let testSeed: UInt64 = {
    let seed = fixedSeed ?? UInt64.random(in: 0...UInt64.max)
    print("TEST_SEED=\(seed)")
    return seed
}()

/// Runs a random test's sequences: `count` of them, `TEST_DEPTH` (1) times as many where there is more time, and more, up
/// to ten times that, until what they have to reach is reached. Their seeds follow ``testSeed``, so that each repeats
/// alone as the first one of a run.
public func runSequences(
    _ count: UInt64, until isReached: () -> Bool = { true }, _ run: (_ seed: UInt64) throws -> Void
) rethrows {
    var number: UInt64 = 0
    while number < count * depth || (!isReached() && number < 10 * count * depth) {
        try run(testSeed &+ number)
        number += 1
    }
}

private let depth = ProcessInfo.processInfo.environment["TEST_DEPTH"].flatMap(UInt64.init) ?? 1

/// The seed of what is fed to parsers: the same in every run, so that a run that was green stays so.
public let fuzzSeed: UInt64 = fixedSeed ?? 20_260_101

private let fixedSeed = ProcessInfo.processInfo.environment["TEST_SEED"].flatMap(UInt64.init)
