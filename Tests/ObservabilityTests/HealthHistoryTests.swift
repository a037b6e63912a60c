// SPDX-License-Identifier: Apache-2.0

import Contracts
import Testing

@testable import Observability

/// What is said of checks, and when.
@Suite struct HealthHistoryTests {
    private let start = ContinuousClock.now
    private let time = Timestamp(milliseconds: 0)

    private func report(_ problems: [String: String]) -> HealthReport {
        HealthReport(
            ready: [
                HealthCheck(name: "database", ok: problems["database"] == nil, detail: problems["database"]),
                HealthCheck(
                    name: "group", ok: problems["group"] == nil, detail: problems["group"], patience: .seconds(10)),
                HealthCheck(name: "apps", ok: problems["apps"] == nil, detail: problems["apps"], isRequired: false),
            ])
    }

    /// - Returns: events and texts.
    private func say(
        _ history: inout HealthHistory, _ problems: [String: String], after seconds: Int, waiting: Int64 = 0
    ) -> [String] {
        history.look(
            at: report(problems), backlog: .init(count: waiting, oldest: waiting > 0 ? 58 : 0),
            now: start + .seconds(seconds), time: time
        ).map { "\($0.event): \($0.text)" }
    }

    @Test func aFaultIsSaidAtItsBeginningEachMinuteAndAtItsEnd() {
        var history = HealthHistory(now: start)
        #expect(say(&history, [:], after: 2) == ["service.ready: ready after 2.0 s"])
        #expect(say(&history, ["database": "refused"], after: 5) == ["database.down: refused"])
        #expect(say(&history, ["database": "refused"], after: 64).isEmpty)
        #expect(
            say(&history, ["database": "refused"], after: 255, waiting: 212) == [
                "database.still: still, for 4 min 10 s: refused; 212 commands wait, the oldest for 58 s"
            ])
        #expect(
            say(&history, [:], after: 257, waiting: 391) == [
                "database.up: well again after 4 min 12 s; catching up on 391 commands"
            ])
        #expect(
            say(&history, [:], after: 260) == ["service.caught-up: caught up on 391 commands in 3.0 s"])
        #expect(say(&history, [:], after: 261).isEmpty)
        _ = say(&history, ["database": "refused"], after: 262)
        let again = say(&history, ["database": "refused"], after: 322, waiting: 1)
        #expect(again == ["database.still: still, for 1 min 0 s: refused; 1 command waits, the oldest for 58 s"])
    }

    /// A rebalance is told of when it does not end; what lasts is counted from its beginning.
    @Test func whatHasLastedCountsFromItsBeginning() {
        var history = HealthHistory(now: start)
        func look(_ ok: Bool, _ seconds: Int) -> [HealthHistory.Line] {
            let check = HealthCheck(
                name: "group", ok: ok, detail: ok ? nil : "hangs", hasLasted: ok ? .zero : .seconds(21))
            return history.look(
                at: HealthReport(ready: [check]), backlog: nil, now: start + .seconds(seconds),
                time: Timestamp(milliseconds: Int64(seconds) * 1000))
        }
        _ = look(true, 0)
        #expect(look(false, 30).map(\.event) == ["group.down"])
        let check = HealthCheck(name: "group", ok: false, hasLasted: .seconds(25))
        let dated = history.dated(HealthReport(ready: [check]), time: Timestamp(milliseconds: 34_000))
        #expect(dated.ready[0].since == Timestamp(milliseconds: 9000))
        #expect(look(true, 40).map(\.seconds) == [31])
    }

    /// What is not known for long, and was said, is what the others wait for.
    @Test func whatIsNotKnownForLongIsACause() {
        var history = HealthHistory(now: start)
        func look(_ seconds: Int) -> [String] {
            history.look(
                at: HealthReport(ready: [
                    HealthCheck(name: "database", ok: false, patience: .seconds(20)),
                    HealthCheck(name: "group", ok: false, patience: .seconds(24), after: ["database"]),
                ]), backlog: nil, now: start + .seconds(seconds), time: time
            ).map(\.event)
        }
        #expect(look(0) == [] && look(19) == [])
        #expect(look(20) == ["database.down"])
        for second in 21..<80 { #expect(look(second) == []) }
        #expect(look(80) == ["database.still"])
    }

    /// What was well when something began to fail has not caused it.
    @Test(arguments: [(40, ["database"]), (50, ["database"]), (51, [])])
    func aCauseIsNoLaterThanItsConsequence(_ second: Int, _ causes: [String]) {
        var database = HealthCheck(name: "database", ok: false)
        var group = HealthCheck(name: "group", ok: false, patience: .seconds(24), after: ["database"])
        #expect(group.causes(among: [database, group]) == ["database"])
        database.since = Timestamp(milliseconds: Int64(second) * 1000)
        group.since = Timestamp(milliseconds: 40_000)
        #expect(group.causes(among: [database, group]) == causes)
    }

    /// What follows from a cause is not said while the cause lasts, nor just after it.
    @Test func aConsequenceIsSaidWhenItHasNoCause() {
        var history = HealthHistory(now: start)
        _ = say(&history, [:], after: 0)
        _ = say(&history, ["database": "refused", "group": "left"], after: 1)
        #expect(say(&history, ["database": "refused", "group": "left"], after: 50).isEmpty)
        // Nor do the metrics say it.
        #expect(history.hasTold(of: "database") && !history.hasTold(of: "group"))
        #expect(say(&history, ["group": "left"], after: 51).map { $0.prefix(11) } == ["database.up"])
        #expect(say(&history, ["group": "left"], after: 59).isEmpty)
        #expect(say(&history, ["group": "left"], after: 60) == ["group.down: left"])
        #expect(!history.hasTold(of: "database") && history.hasTold(of: "group"))
        #expect(say(&history, [:], after: 70) == ["group.up: well again after 1 min 9 s"])
    }

    /// Each try to mend the file is told what came of it, and nobody's readiness depends on it.
    @Test func whatIsMendedByTryingIsSaidAnewForEachTry() {
        var history = HealthHistory(now: start)
        #expect(
            say(&history, ["apps": "line 3"], after: 1) == ["apps.down: line 3", "service.ready: ready after 1.0 s"])
        #expect(say(&history, ["apps": "line 3"], after: 2).isEmpty)
        #expect(say(&history, ["apps": "line 4"], after: 3) == ["apps.down: line 4"])
        #expect(say(&history, [:], after: 4, waiting: 1) == ["apps.up: well again after 3.0 s"])
        #expect(say(&history, [:], after: 5).isEmpty)
    }

    @Test func whatFailsHasItsTime() {
        var history = HealthHistory(now: start)
        _ = say(&history, ["database": "refused"], after: 1)
        let dated = history.dated(report(["database": "refused"]), time: Timestamp(milliseconds: 9000))
        #expect(dated.ready.map(\.since) == [time, nil, nil])
    }
}
