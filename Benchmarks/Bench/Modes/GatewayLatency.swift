// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation

/// The same commands by HTTP and straight over Kafka, one after the other on the same services: of each half make a link,
/// and half ask for it again.
struct GatewayLatency {
    let kafka: Latency
    let http: PacedRequests.Outcome
    let complaints: [String]

    static func run(_ stage: Stage, _ options: BenchCommand, count: Int) throws -> GatewayLatency {
        let services = try stage.start()
        defer { services.stop() }
        // Installs and persons for both.
        let persons = max(1, count / 2)
        let workload = try LinkWorkload.plain(count, CommandFactory(stage), spare: persons)
        let records = try stage.prepare(workload, with: services)
        var http: PacedRequests.Outcome?
        func overHTTP() throws -> PacedRequests.Outcome {
            let requests = (0..<count).map { number in
                let person = persons + number % persons
                return request(LinkWorkload.request(install: person, person: person))
            }
            return try PacedRequests(
                requests: requests, port: services.subject.port(), connections: options.connections, rate: options.rate,
                warmUp: options.rate * Latency.warmUpSeconds
            ).run()
        }
        if options.httpFirst { http = try overHTTP() }
        let kafka = try Latency.measure(stage, services, workload, records, rate: options.rate)
        return GatewayLatency(kafka: kafka, http: try http ?? overHTTP(), complaints: services.complaints)
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

    func tell(_ report: inout Report) {
        http.times.tell(&report, "HTTP ")
        report.add("HTTP worst delay of the sender", http.sendDelay.inSeconds * 1000, "ms")
        report.add("HTTP requests that waited for a free connection", Double(http.waited))
        kafka.tell(&report, "Kafka ")
        for (status, count) in http.statuses where status != 200 {
            report.problems.append("\(count) requests got \(status)")
        }
        if http.missing > 0 { report.problems.append("\(http.missing) requests were not answered") }
        report.problems += complaints.prefix(5).map { "the log says \($0)" }
    }
}
