// SPDX-License-Identifier: Apache-2.0

import Contracts
import Foundation

/// Judges what stands on the topics. Knows nothing of tables, lanes or epochs, only what docs/guarantees.md promises to
/// those who read.
struct Oracle {
    let log: SimulatedLog
    let deployed: Set<String>
    /// The store was put back: what was decided on what it lost may be decided anew.
    let isStorePutBack: Bool
    /// Records were lost that somebody may have wanted to read.
    let isLogLossy: Bool

    private struct Output {
        var place: TopicPartition
        var record: Record
        var envelope: Envelope
        var id: String
    }

    func violations() -> [String] {
        let outputs = log.written.compactMap(output)
        var first: [Output] = []
        var known: [String: Record] = [:]
        var problems: [String] = []
        for output in outputs {
            var name = "\(output.place.topic) \(output.envelope["source"] ?? "") \(output.id)"
            // A dry run asks about the command that would have this id; several may.
            if output.envelope["dryrun"] == "true" { name += " tried for \(output.envelope["replykey"] ?? "")" }
            guard let before = known[name] else {
                known[name] = output.record
                first.append(output)
                continue
            }
            if before != output.record, !isStorePutBack {
                problems.append("DOUBLED: two messages \(name) differ\n    \(text(before))\n    \(text(output.record))")
            }
        }
        guard !isStorePutBack else { return problems }
        return problems + order(of: first) + completeness(of: first) + (isLogLossy ? [] : replyOrder(first))
    }

    private func output(_ written: SimulatedLog.Written) -> Output? {
        guard !written.place.topic.contains(".dlq."), let envelope = Envelope(written.record),
            let id = envelope["id"], !id.hasPrefix(Peers.mark), let source = envelope["source"],
            deployed.contains(source)
        else { return nil }
        return Output(place: written.place, record: written.record, envelope: envelope, id: id)
    }

    private func text(_ record: Record) -> String { String(decoding: record.value ?? [], as: UTF8.self) }

    /// Events of one input stand in the order in which they were decided.
    private func order(of first: [Output]) -> [String] {
        var latest: [String: String] = [:]
        var problems: [String] = []
        for output in first {
            guard let sequence = output.envelope["sequence"], let end = sequence.firstIndex(of: "]") else { continue }
            let lane = "\(output.place) \(sequence[...end]) \(sequence[end...].prefix(8))"
            if let before = latest[lane], before >= sequence {
                problems.append("MISORDERED: \(sequence) stands behind \(before) on \(output.place)")
            }
            latest[lane] = sequence
        }
        return problems
    }

    /// Of what one record led to there is the first event, the second, and so on.
    private func completeness(of first: [Output]) -> [String] {
        var events: [String: Set<Int>] = [:]
        for output in first {
            guard let sequence = output.envelope["sequence"], let number = Int(sequence.suffix(4)) else { continue }
            events[String(sequence.dropLast(5)), default: []].insert(number)
        }
        return events.sorted { $0.key < $1.key }.compactMap { record, numbers in
            numbers == Set(0..<numbers.count) ? nil : "LOST: of \(record) there are only the events \(numbers.sorted())"
        }
    }

    /// Commands of one partition are answered in their order, as far as their answers stand together and waited for
    /// nobody.
    private func replyOrder(_ first: [Output]) -> [String] {
        // What another service or command has to come first for: what settles it is decided on another partition, so
        // that a reply which was held up may even come behind the one that follows it.
        let causes = Set(
            first.filter { $0.place.topic.contains(".commands.") }.compactMap { $0.envelope["causationid"] }
                + first.filter { $0.envelope.data["status"] as? String == "pending" }
                .compactMap { $0.envelope.data["commandId"] as? String })
        var inputs: [String: [(TopicPartition, Int64, String)]] = [:]
        for written in log.written where written.place.topic.contains(".commands.") {
            guard let envelope = Envelope(written.record), let id = envelope["id"] else { continue }
            inputs[id, default: []].append((written.place, written.offset, text(written.record)))
        }
        var latest: [String: (offset: Int64, id: String)] = [:]
        var seen: Set<String> = []
        var problems: [String] = []
        for output in first where output.place.topic == Topics().replies {
            guard let id = output.envelope.data["commandId"] as? String, seen.insert(id).inserted,
                !causes.contains(id), output.envelope.data["dryRun"] == nil, let sent = inputs[id],
                let (place, offset, _) = sent.first,
                Set(sent.map(\.2)).count == 1
            else { continue }
            let lane = "\(place) \(output.place)"
            if let before = latest[lane], before.offset > offset {
                problems.append("MISORDERED: \(id) at \(offset) of \(place) is answered behind \(before.id)")
            }
            latest[lane] = (offset, id)
        }
        return problems
    }
}

extension Client {
    /// What the link service promises of installs: a user is active on one.
    func linkInvariants(_ questions: [Int]) -> [String] {
        var active: [String: [String]] = [:]
        for number in questions {
            guard let result = answers["c\(number)"]?.last(where: \.isFinal)?.result,
                result["isActive"] as? Bool == true,
                let user = result["userId"] as? String, let install = result["installId"] as? String
            else { continue }
            active[user, default: []].append(install)
        }
        return active.filter { $0.value.count > 1 }.sorted { $0.key < $1.key }.map { user, installs in
            "INVARIANT: \(user) is active on \(installs)"
        }
    }
}
