// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Observability

@Suite struct ConventionsOptInTests {
    @Test(
        arguments: [
            ("", []), ("http", [.http]), ("messaging/dup", [.messaging]), (" HTTP , messaging", [.http, .messaging]),
            ("http,http/dup", [.http]), (",,", []),
        ] as [(String, Set<ConventionsOptIn.Category>)])
    func categories(list: String, categories: Set<ConventionsOptIn.Category>) {
        let optIn = ConventionsOptIn(list)
        #expect(optIn.categories == categories && optIn.ignored == [])
    }

    /// The variable is one of a whole deployment, so other programs may know what this one does not.
    @Test func whatMeansNothingHereIsKeptAsItWasWritten() {
        let optIn = ConventionsOptIn("database, mesaging,rpc/dup,http/twice,/dup,http")
        #expect(optIn.ignored == ["database", "mesaging", "rpc/dup", "http/twice", "/dup"])
        #expect(optIn.includes(.http) && !optIn.includes(.messaging))
    }

    @Test func aBatchIsOneObservationOfAllThatIsInIt() {
        let registry = PrometheusRegistry()
        let timer = RepeatedTimer(label: "x", dimensions: [("k", "v")], factory: registry)
        timer.record(.milliseconds(250), times: 4)
        timer.record(.seconds(1), times: 0)
        #expect(Samples(registry).value("x_seconds_count{k=\"v\"}") == "4")
        #expect(Samples(registry).value("x_seconds_sum{k=\"v\"}") == "1")
        #expect(Samples(registry).value("x_seconds_bucket{k=\"v\",le=\"0.1\"}") == "0")
        #expect(Samples(registry).value("x_seconds_bucket{k=\"v\",le=\"0.25\"}") == "4")
    }
}
