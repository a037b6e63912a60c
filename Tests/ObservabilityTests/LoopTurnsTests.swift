// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import Observability

@Suite(.timeLimit(.minutes(5))) struct LoopTurnsTests {
    /// Counts how often an event loop has looked at its sockets.
    private final class Looks: NIOEventLoopMetricsDelegate {
        private let state = Atomic(0)
        var count: Int { state.load(ordering: .relaxed) }

        func processedTick(info: NIOEventLoopTickInfo) { state.add(1, ordering: .relaxed) }
    }

    /// Each number with how often the loop had looked when it was its turn, the last one being put off by the first.
    /// - Parameter gone: those that leave before.
    private func turns(of count: Int, without gone: Range<Int> = 0..<0) async throws -> [(number: Int, look: Int)] {
        let looks = Looks()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1, metricsDelegate: looks)
        let loop = group.next()
        let done = loop.makePromise(of: [(number: Int, look: Int)].self)
        loop.execute {
            do {
                let turns = try LoopTurns.of(loop)
                var all = [(number: -1, look: looks.count)]
                func go(_ number: Int) {
                    all.append((number, looks.count))
                    if number == gone.upperBound { _ = turns.next { go(count) } }
                    if all.count == count - gone.count + 2 { done.succeed(all) }
                }
                let places = (0..<count).map { number in turns.next { go(number) } }
                for number in gone { turns.leave(places[number]) }
            } catch {
                done.fail(error)
            }
        }
        let all = try await done.futureResult.get()
        try await group.shutdownGracefully()
        return all
    }

    @Test func whatIsPutOffWaitsUntilTheLoopHasLooked() async throws {
        let all = try await turns(of: 1)
        #expect(all.map(\.number) == [-1, 0, 1])
        #expect(zip(all, all.dropFirst()).allSatisfy { $0.look < $1.look }, "\(all)")
    }

    @Test func manyGoOnInTheirOrderSomeAtOnce() async throws {
        let all = try await turns(of: 200)
        #expect(all.map(\.number) == Array(-1...200))
        let atOnce = Dictionary(grouping: all, by: \.look).values.map(\.count)
        #expect(atOnce.allSatisfy { $0 <= LoopTurns.most } && atOnce.max() == LoopTurns.most, "\(atOnce)")
    }

    /// Those that are there go on as if they had been alone.
    @Test func whoHasGoneTakesNobodysTurn() async throws {
        let all = try await turns(of: 5000, without: 0..<4950)
        #expect(all.map(\.number) == [-1] + (4950...5000))
        #expect(Set(all.dropFirst().dropLast().map(\.look)).count == 1, "\(all)")
    }

    /// But after a look, and whatever requests wait.
    @Test func whatCostsNothingGoesOnAtOnce() async throws {
        let looks = Looks()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1, metricsDelegate: looks)
        let loop = group.next()
        let done = loop.makePromise(of: [Int].self)
        loop.execute {
            do {
                let turns = try LoopTurns.of(loop)
                var all = [looks.count]
                for _ in 0..<200 { _ = turns.next {} }
                for _ in 0..<200 {
                    turns.whenLooked {
                        all.append(looks.count)
                        if all.count == 201 { done.succeed(all) }
                    }
                }
            } catch {
                done.fail(error)
            }
        }
        let all = try await done.futureResult.get()
        try await group.shutdownGracefully()
        #expect(all[0] < all[1] && Set(all.dropFirst()).count == 1, "\(all)")
    }

    @Test func aLoopHasOneOfThem() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        for loop in group.makeIterator() {
            let isTheSame = try await loop.submit { try LoopTurns.of(loop) === LoopTurns.of(loop) }.get()
            #expect(isTheSame)
        }
        try await group.shutdownGracefully()
    }
}
