// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Observability

@Suite struct MetricTextTests {
    @Test(
        arguments: [
            (0.0, "0"), (-0.0, "0"), (1.0, "1"), (0.0025, "0.0025"), (-1.5, "-1.5"), (1e15, "1000000000000000"),
            (1e22, "1e+22"), (.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"),
        ] as [(Double, String)])
    func numbers(value: Double, text: String) {
        #expect(MetricText.number(value) == text)
    }

    @Test(arguments: [
        ("messaging.process.duration", "messaging_process_duration"), ("a-b c", "a_b_c"), ("9lives", "_9lives"),
        ("ns:name", "ns:name"), ("größe", "gr__e"), ("", "_"), ("x\u{1F600}y", "x_y"),
    ])
    func metricNames(raw: String, name: String) {
        #expect(MetricName.metric(raw) == name)
    }

    @Test func suffixesAreNotRepeated() {
        #expect(MetricName.metric("jobs", suffix: "_total") == "jobs_total")
        #expect(MetricName.metric("jobs.total", suffix: "_total") == "jobs_total")
    }

    @Test(arguments: [("a.b", "a_b"), ("le", "exported_le"), ("__name__", "exported___name__"), ("a:b", "a_b")])
    func labelNames(raw: String, name: String) {
        #expect(MetricName.label(raw) == name)
    }

    @Test func labelsAreSortedEscapedAndUnique() {
        let labels = LabelSet([("z", "1"), ("a.b", "old"), ("a-b", "x\\y\"z\r\nw"), ("none", "")])
        #expect(labels.text == "a_b=\"x\\\\y\\\"z\r\\nw\",z=\"1\"")
        #expect(labels == LabelSet([("a_b", "x\\y\"z\r\nw"), ("z", "1")]))
    }

    @Test func processStatWithAHostileCommandName() {
        let line = "7 (a) b) (c) S 1 7 7 0 -1 4194304 100 0 0 0 11 22 0 0 20 0 4 0 333 1000 444 1 2 3\n"
        let stat = ProcessStat(line: line)
        #expect(stat?.cpuTicks == 33)
        #expect(stat?.startTicks == 333)
        #expect(stat?.residentPages == 444)
        #expect(ProcessStat(line: "7 (a) S 1") == nil)
        #expect(ProcessStat(line: "") == nil)
    }
}
