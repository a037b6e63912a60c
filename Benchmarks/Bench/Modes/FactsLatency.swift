// SPDX-License-Identifier: Apache-2.0

import Contracts
import Runtime
import WireJSON

/// How long the link service takes to say what it knows of an id, in a store of many decisions: two thirds of them about
/// people with twenty each, a third about one person. And how long `identitybus explain` takes,
/// which asks all services.
struct FactsLatency {
    /// Ids of people, each another one.
    let people: Latency
    /// The person with a third of all decisions: the first page, again and again.
    let firstPage: Latency
    /// The pages behind it, one after the other.
    let laterPages: Latency
    /// `identitybus explain` about people, from its start to its end, one after the other.
    let explain: Times
    /// The same about the person with a third of all decisions.
    let explainFirstPage: Times
    let decisions: Int

    private static let chunk = 20_000
    private static let decisionsOfAPerson = 20
    private static let explained = 100

    static func run(_ stage: Stage, _ options: BenchCommand) throws -> FactsLatency {
        let services = try stage.start()
        defer { services.stop() }
        let persons = max(1, options.commands * 2 / 3 / decisionsOfAPerson)
        try fill(stage, services, persons: persons)
        var random = SeededGenerator(seed: 7)
        let count = options.rate * (options.seconds + Latency.warmUpSeconds)
        let asked = (0..<count).map { _ in Int.random(in: 1...persons, using: &random) }
        let ids = asked.enumerated().map { number, person in
            number.isMultiple(of: 2) ? UserWorkload.externalID(person).text : UserWorkload.installID(person * 2).text
        }
        try logIn(Set(asked.suffix(explained) + [0]), stage, services)
        let hot = UserWorkload.externalID(0).text
        let people = try ask(ids.map { FactsQuery(id: $0) }, "people", stage, services, options.rate)
        let first = try ask(
            (0..<count).map { _ in FactsQuery(id: hot) }, "first page", stage, services, options.rate)
        let pages = try pages(of: hot, count, stage, services)
        let later = try ask(pages, "later pages", stage, services, options.rate)
        return FactsLatency(
            people: people, firstPage: first, laterPages: later,
            explain: try explain(ids.suffix(explained), stage),
            explainFirstPage: try explain(Array(repeating: hot, count: explained), stage), decisions: options.commands)
    }

    /// Each person is linked on two installs. Five turns of thirteen are person 0's: a third of all decisions.
    private static func fill(_ stage: Stage, _ services: ServiceGroup, persons: Int) throws {
        let factory = CommandFactory(stage)
        let installs = (persons + 1) * 2
        let turns = persons * (decisionsOfAPerson - 4) + persons * decisionsOfAPerson / 2
        let start = ContinuousClock.now
        // Whoever is linked on an install finds it registered, and whose install changes is linked.
        for range in [0..<installs, installs..<installs * 2, installs * 2..<installs * 2 + turns] {
            for first in stride(from: range.lowerBound, to: range.upperBound, by: chunk) {
                let records = try (first..<min(first + chunk, range.upperBound)).map { number in
                    let id = "fill-\(number)"
                    if number < installs { return try LinkWorkload.registration(number, factory, id: id) }
                    if number < installs * 2 {
                        let install = number - installs
                        return try factory.record(LinkWorkload.request(install: install, person: install / 2), id: id)
                    }
                    return try turn(number - installs * 2, of: persons, factory, id: id)
                }
                _ = try stage.prepare(Workload("decisions", preparation: records, []), with: services)
                Progress.show(first + records.count, of: installs * 2 + turns, "decisions", since: start)
            }
        }
    }

    /// Each of a person's turns changes the status of their first install: what is decided about one install is decided in
    /// order.
    private static func turn(_ number: Int, of persons: Int, _ factory: CommandFactory, id: String) throws -> Record {
        let (round, place) = number.quotientAndRemainder(dividingBy: 13)
        let own = round * 8 + place - 5
        let (person, turn) = place < 5 ? (0, round * 5 + place) : (1 + own % persons, own / persons)
        return try factory.record(
            SetInstallStatus(
                installId: UserWorkload.installID(person * 2), status: turn.isMultiple(of: 2) ? .disabled : .enabled,
                author: "desk", reason: "lost"), id: id, asService: true)
    }

    /// Those who are explained have a profile and a device too, as people who use an app have.
    private static func logIn(_ persons: Set<Int>, _ stage: Stage, _ services: ServiceGroup) throws {
        let factory = CommandFactory(stage)
        let records = try persons.sorted().map { person in
            let identities: [IdentityType: String] = [
                .customerID: UserWorkload.externalID(person).text, .email: "person-\(person)@example.com",
                .deviceApplicationStamp: "stamp-\(person)",
            ]
            let known = Dictionary(uniqueKeysWithValues: identities.map { ($0.key.rawValue, $0.value) })
            let request = SyncRequest(
                deviceId: SyncWorkload.deviceID(person), knownIdentities: known, environment: .production)
            return try factory.record(LogInUser(request), id: "login-\(person)")
        }
        _ = try stage.prepare(Workload("logins", preparation: records, []), with: services)
    }

    private static func explain(_ ids: some Sequence<String>, _ stage: Stage) throws -> Times {
        var times = Times()
        for id in ids { times.add(try stage.time(["explain", id, "--app", Stage.app.text])) }
        return times
    }

    private static func ask(
        _ queries: [FactsQuery], _ name: String, _ stage: Stage, _ services: ServiceGroup, _ rate: Int
    ) throws -> Latency {
        var factory = CommandFactory(stage)
        factory.source = "https://desk.example/\(name)"
        let records = try queries.enumerated().map { number, query in
            try factory.record(
                ReadFacts<FactsOf.Link>(query), id: CommandFactory.id(number), asService: true)
        }
        return try Latency.measure(stage, services, Workload(name, records), records, rate: rate)
    }

    /// - Returns: queries for the pages behind the first, from the beginning again when they are over.
    private static func pages(
        of id: String, _ count: Int, _ stage: Stage, _ services: ServiceGroup
    ) throws -> [FactsQuery] {
        var (pages, next): ([FactsQuery], String?) = ([], nil)
        let factory = CommandFactory(stage)
        while pages.count < min(count, 50) {
            let query = FactsQuery(id: id, page: next)
            let record = try factory.record(
                ReadFacts<FactsOf.Link>(query), id: "page-\(pages.count)", asService: true)
            var found: String?
            let workload = Workload("a page", preparation: [record], count: 0) { results in
                found = results["page-\(pages.count)"]?["next"]?.stringValue
                return []
            }
            _ = try stage.prepare(workload, with: services)
            guard let found else { break }
            pages.append(FactsQuery(id: id, page: found))
            next = found
        }
        guard !pages.isEmpty else { throw BenchError("\(id) has one page only") }
        return (0..<count).map { pages[$0 % pages.count] }
    }

    func tell(_ report: inout Report) {
        report.setting["decisions"] = String(decisions)
        people.tell(&report, "people: ")
        firstPage.tell(&report, "first page: ")
        laterPages.tell(&report, "later pages: ")
        explain.tell(&report, "explain: ")
        explainFirstPage.tell(&report, "explain, first page: ")
    }
}
