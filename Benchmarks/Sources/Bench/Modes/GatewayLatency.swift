// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation
import Histogram
import WireJSON

/// The same command by HTTP and straight over Kafka, one after the other on the same services.
struct GatewayLatency {
    let kafka: Latency
    let http: PacedRequests.Outcome
    let connections: Int
    let complaints: [String]

    static func run(
        _ stage: Stage, _ workload: Workload, rate: Int, seconds: Int, connections: Int
    ) throws -> GatewayLatency {
        let (services, _) = try stage.start()
        defer { services.stop() }
        let records = try stage.prepare(workload, with: services)
        let kafka = try Latency.measure(
            stage, services, workload, records, rate: rate, seconds: seconds)
        // The first half of the records made these links, the second half asked for them again, as this does.
        let persons = records.count / 2
        let requests = (0..<records.count).map { number in
            request(LinkWorkload.request(install: number % persons, person: number % persons))
        }
        let http = try PacedRequests(
            requests: requests, port: services.subject.port(), connections: connections, rate: rate,
            warmUp: rate * Latency.warmUpSeconds
        ).run()
        return GatewayLatency(
            kafka: kafka, http: http, connections: connections, complaints: services.complaints)
    }

    private static func request(_ command: LinkRequest) -> [UInt8] {
        let body = #"{"external_id":"\#(command.externalId)"}"#
        let head = [
            "POST /v2/users/\(command.installId)/link HTTP/1.1", "Host: gateway.example",
            "Authorization: Bearer \(Stage.keyID).\(Stage.keySecret)", "Content-Type: application/json",
            "Content-Length: \(body.utf8.count)",
        ]
        return Array((head.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8)
    }

    func report() -> String {
        func milliseconds(_ microseconds: UInt64) -> String { (Double(microseconds) / 1000).shown + " ms" }
        var table = Table(
            "\(kafka.name) at \(kafka.rate)/s for \(kafka.seconds) s, \(kafka.engine.name)",
            "HTTP, \(connections) connections", "straight over Kafka")
        for (name, percentile) in [("p50", 50), ("p90", 90), ("p99", 99), ("p99.9", 99.9)] {
            table.add(
                name, milliseconds(http.histogram.valueAtPercentile(percentile)),
                milliseconds(kafka.histogram.valueAtPercentile(percentile)))
        }
        table.add("max", milliseconds(http.histogram.maxRecorded), milliseconds(kafka.histogram.maxRecorded))
        table.add("measured", Double(http.histogram.totalCount).shown, Double(kafka.histogram.totalCount).shown)
        table.add(
            "worst delay of the sender", milliseconds(UInt64(http.sendDelay.inSeconds * 1e6)),
            milliseconds(UInt64(kafka.sendDelay.inSeconds * 1e6)))
        table.add("requests that waited for a free connection", String(http.waited))
        return table.text
    }

    var problems: [String] {
        var problems = kafka.problems
        for (status, count) in http.statuses where status != 200 { problems.append("\(count) requests got \(status)") }
        if http.missing > 0 { problems.append("\(http.missing) requests were not answered") }
        return problems + complaints.prefix(5).map { "the log says \($0)" }
    }
}
