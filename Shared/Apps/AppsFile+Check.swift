// SPDX-License-Identifier: Apache-2.0

public import Contracts
import Crypto
import Yams

extension AppsFile {
    /// Something that the author of a file should know, with its place.
    public struct Finding: Sendable, Hashable {
        public enum Level: String, Sendable {
            /// Services refuse the file.
            case error
            case warning = "warn"
        }

        public var level: Level
        /// Counted from 1.
        public var line: Int
        public var column: Int
        public var message: String
    }

    /// What there is to say about a file.
    public struct Report: Sendable {
        /// In the order of the text.
        public var findings: [Finding]
        /// The apps; `nil` when there is an error.
        public var apps: AppDirectory?
        /// Whether there are more errors than are told.
        public var hasMore = false
        /// A digest of each secret by its place, to tell whether it is another one.
        public var secrets: [String: [UInt8]]
    }

    /// How many errors are told; who has more has another problem.
    private static let mostErrors = 200

    /// Looks for everything that is wrong, by the reading that services do: what it refuses is taken out of the file, and
    /// what is left is read again. So a file without errors is one that services accept. Each app is read alone for that,
    /// so that a mistake costs one app's reading; then all that is left, for what is wrong between apps.
    /// - Parameters:
    ///   - path: where the file is; relative secret files are beside it.
    ///   - readsSecrets: whether secret files are read. Otherwise each is taken for a good secret.
    public static func check(
        _ text: String, path: String, weakSecrets: WeakSecrets, keys: DeploymentKeys, readsSecrets: Bool,
        now: Timestamp
    ) -> Report {
        var report = Report(findings: [], apps: nil, secrets: [:])
        var pruned: PrunedFile
        do {
            pruned = PrunedFile(root: try compose(text))
        } catch {
            report.findings = [PrunedFile.whole(error)]
            return report
        }
        let secrets = {
            SecretReader(.everything) { file in
                guard readsSecrets else { return "\(file) is not read, and taken for a good secret" }
                return try TextFile.secret(AppsSource.secretPath(file, besides: path))
            }
        }
        var between: [Problem] = []
        let reading = pruned.read(&report.findings, atMost: mostErrors) { root throws(Problem) in
            between = []
            return try read(root, keys, secrets()) { between.append($0) }
        }
        if let reading {
            report.hasMore = report.findings.count + between.count > mostErrors
            report.findings += between.prefix(mostErrors - report.findings.count).map { pruned.finding($0, .error) }
            report.findings += reading.weaknesses.map {
                pruned.finding($0, weakSecrets == .refuse ? .error : .warning)
            }
            report.findings += (remarks(on: reading, ofDemos: true) + momentary(reading, now)).map {
                pruned.finding($0, .warning)
            }
            if !report.findings.contains(where: { $0.level == .error }) { report.apps = AppDirectory(reading.apps) }
            for use in reading.uses { report.secrets[use.place.words] = Array(SHA256.hash(data: use.secret)) }
        }
        if reading == nil, report.findings.count >= mostErrors { report.hasMore = true }
        report.findings.sort { ($0.line, $0.column, $0.message) < ($1.line, $1.column, $1.message) }
        return report
    }

    /// What there is to say about a file that is no text; `nil` where nothing of it can be read.
    public static func report(on problem: TextFile.Problem) -> Report? {
        guard let (line, column) = problem.place else { return nil }
        let finding = Finding(
            level: .error, line: line, column: column, message: "is not UTF-8 from here on; save it as UTF-8")
        return Report(findings: [finding], apps: nil, secrets: [:])
    }

    /// What is said of demo apps, and of keys that end: processes say that by other ways (`KeyExpiry`, `AppDirectory.demo`).
    private static func momentary(_ reading: Reading, _ now: Timestamp) -> [Problem] {
        var remarks: [Problem] = []
        let demo = zip(reading.apps, reading.places).first { $0.0.isDemo }
        if let demo { remarks += reading.demo.map { Problem($0, at: demo.1.steps) } }
        for key in reading.apps.flatMap(\.keys.values) {
            if let place = reading.keyPlaces[key.id] { remarks += Self.remarks(on: key, place, now) }
        }
        return remarks
    }

    /// What can be used and should not stay so, whenever it is read. In the order of the file.
    /// - Parameter ofDemos: also of demo apps, of which processes say nothing more than that they are there.
    static func remarks(on reading: Reading, ofDemos: Bool) -> [Problem] {
        var remarks: [Problem] = []
        for (app, place) in zip(reading.apps, reading.places) where ofDemos || !app.isDemo {
            let verification = place.inside("verification")
            if app.verification.mode != .off, app.verification.signedFields == .vendor {
                remarks.append(
                    Problem(
                        "\(verification): signedFields vendor joins user id and e-mail without a separator, so two people can "
                            + "have one token; prefer delimited, userId or email", at: verification["signedFields"]))
            }
            if let remark = remark(on: app, place.inside("retention")) { remarks.append(remark) }
            for key in app.keys.values.sorted(by: { $0.id.text < $1.id.text }) {
                if let place = reading.keyPlaces[key.id], let remark = remark(on: key, place) { remarks.append(remark) }
            }
        }
        return remarks
    }

    /// Of anonymous profiles that go while an SDK may still alias them (S201).
    private static func remark(on app: AppSettings, _ place: Place) -> Problem? {
        let days = app.sync.limits.aliasWindowDays
        guard let anonymous = app.retention.anonymous, anonymous < Int64(days) * 86_400_000 else { return nil }
        return Problem(
            "\(place): anonymousDays is less than sync.limits.aliasWindowDays, \(days): who logs in later cannot take over "
                + "what they did before (ALIAS_ERROR)", at: place["anonymousDays"])
    }

    /// Of a key for two kinds of holders.
    private static func remark(on key: APIKey, _ place: Place) -> Problem? {
        let strong = key.scopes.intersection([.support, .admin, .userDelete, .importing, .identityVouch]).map(
            \.rawValue
        ).sorted()
        guard key.scopes.contains(.sdk), !strong.isEmpty else { return nil }
        return Problem(
            "\(place): has the scope sdk, which is for keys in apps, and \(strong.joined(separator: ", ")), which "
                + "only a backend should have; make two keys", at: place["scopes"])
    }

    private static func remarks(on key: APIKey, _ place: Place, _ now: Timestamp) -> [Problem] {
        var remarks: [Problem] = []
        if let expires = key.expires, !key.isRevoked {
            let days = (expires.milliseconds - now.milliseconds) / 86_400_000
            if expires <= now {
                remarks.append(
                    Problem(
                        "\(place): ended \(expires.rfc3339); what it signs becomes a dead letter", at: place["expires"])
                )
            } else if days < 30 {
                remarks.append(
                    Problem("\(place): ends in \(days == 1 ? "1 day" : "\(days) days")", at: place["expires"]))
            }
        }
        return remarks
    }
}

/// A file from which what is wrong has been taken out.
private struct PrunedFile {
    var root: Node
    /// The ways to what was taken out, in the whole file.
    private var removed: Set<[AppsFile.Step]> = []
    /// The place of its first app in the whole file.
    private var firstApp = 0

    init(root: Node) { self.root = root }

    // MARK: Reading

    /// Reads the file until nothing is refused any more, and takes out what is.
    /// - Parameters:
    ///   - findings: what is refused comes behind them, until there are so many.
    ///   - read: with mistakes between apps.
    /// - Returns: what is left, unless there are too many errors.
    mutating func read(
        _ findings: inout [AppsFile.Finding], atMost most: Int,
        by read: (Node) throws(AppsFile.Problem) -> AppsFile.Reading
    ) -> AppsFile.Reading? {
        // A good file is read once.
        if let reading = try? read(root) { return reading }
        readApart(&findings, atMost: most, by: read)
        return readUntilGood(&findings, atMost: most, by: read)
    }

    private mutating func readUntilGood(
        _ findings: inout [AppsFile.Finding], atMost most: Int,
        by read: (Node) throws(AppsFile.Problem) -> AppsFile.Reading
    ) -> AppsFile.Reading? {
        while true {
            do throws(AppsFile.Problem) {
                return try read(root)
            } catch {
                if !isConsequence(error) {
                    guard findings.count < most else { return nil }
                    findings.append(finding(error, .error))
                }
                if !remove(error) { return nil }
            }
        }
    }

    /// Takes out what is wrong within each app, the first one together with what stands beside all apps.
    private mutating func readApart(
        _ findings: inout [AppsFile.Finding], atMost most: Int,
        by read: (Node) throws(AppsFile.Problem) -> AppsFile.Reading
    ) {
        guard let top = root.mapping, let (key, value) = top.first(where: { $0.key.string == Self.list }),
            var list = value.sequence, list.count > 1
        else { return }
        let apps = Array(list)
        var left: [Node] = []
        for (index, app) in apps.enumerated() {
            list.replaceSubrange(list.startIndex..<list.endIndex, with: [app])
            var part = PrunedFile(root: root)
            if index > 0 { part.root = .mapping(Self.only(key, of: top)) }
            part.set(key, .sequence(list))
            part.firstApp = index
            _ = part.readUntilGood(&findings, atMost: most, by: read)
            if let rest = part.root.mapping?[key]?.sequence { left += rest }
            removed.formUnion(part.removed.filter { $0.count > 1 })
            if index == 0 { root = part.root }
        }
        list.replaceSubrange(list.startIndex..<list.endIndex, with: left)
        set(key, .sequence(list))
    }

    private static let list = "apps"

    private static func only(_ key: Node, of mapping: Node.Mapping) -> Node.Mapping {
        var mapping = mapping
        for (other, _) in Array(mapping) where other != key { mapping[other] = nil }
        return mapping
    }

    private mutating func set(_ key: Node, _ value: Node) {
        guard var top = root.mapping else { return }
        top[key] = value
        root = .mapping(top)
    }

    /// The way in the whole file: elements before have gone.
    private func original(_ steps: [AppsFile.Step]) -> [AppsFile.Step] {
        var way: [AppsFile.Step] = []
        for step in steps {
            guard case .element(var index) = step else {
                way.append(step)
                continue
            }
            if way == [.member(Self.list)] { index += firstApp }
            let gone = removed.compactMap { other -> Int? in
                guard other.count == way.count + 1, other.dropLast() == way[...], case .element(let index) = other.last
                else { return nil }
                return index
            }
            for other in gone.sorted() where other <= index { index += 1 }
            way.append(.element(index))
        }
        return way
    }

    /// Whether it is said of what has gone, or of what held it.
    func isConsequence(_ problem: AppsFile.Problem) -> Bool {
        let way = original(problem.steps)
        return removed.contains { $0.starts(with: way) }
    }

    func finding(_ problem: AppsFile.Problem, _ level: AppsFile.Finding.Level) -> AppsFile.Finding {
        let place = problem.position ?? position(problem) ?? AppsFile.Position(root.mark)
        let words = problem.shape.map { text, count in
            "\(AppsFile.path(original(Array(problem.steps.prefix(count))))): \(text)"
        }
        return AppsFile.Finding(
            level: level, line: place?.line ?? 1, column: place?.column ?? 1, message: words ?? problem.description)
    }

    /// Of a file that is not read at all.
    static func whole(_ problem: AppsFile.Problem) -> AppsFile.Finding {
        AppsFile.Finding(
            level: .error, line: problem.position?.line ?? 1, column: problem.position?.column ?? 1,
            message: problem.description)
    }

    // MARK: The way to a place

    private func position(_ problem: AppsFile.Problem) -> AppsFile.Position? {
        var node = root
        var mark = node.mark
        for (index, step) in problem.steps.enumerated() {
            switch (step, node) {
            case (.element(let index), .sequence(let list)) where list.indices.contains(index): node = list[index]
            case (.member(let name), .mapping(let mapping)):
                guard let pair = Self.pair(name, in: mapping) else { return AppsFile.Position(mark) }
                if problem.isAboutName, index == problem.steps.count - 1 { return AppsFile.Position(pair.key.mark) }
                node = pair.value
            default: return AppsFile.Position(mark)
            }
            mark = node.mark ?? mark
        }
        return AppsFile.Position(mark)
    }

    /// A member of a mapping, or of those that are merged into it.
    private static func pair(_ name: String, in mapping: Node.Mapping) -> (key: Node, value: Node)? {
        if let own = mapping.first(where: { $0.key.string == name }) { return own }
        for merged in mapping where merged.key.string == "<<" {
            let sources: [Node.Mapping] =
                switch merged.value {
                case .mapping(let source): [source]
                case .sequence(let list): list.compactMap(\.mapping)
                default: []
                }
            if let pair = sources.lazy.compactMap({ pair(name, in: $0) }).first { return pair }
        }
        return nil
    }

    /// Takes out what is wrong, or, where something is missing, what should have it.
    /// - Returns: whether the file is another one now.
    mutating func remove(_ problem: AppsFile.Problem) -> Bool {
        var steps = problem.steps[...]
        while !steps.isEmpty {
            let way = original(Array(steps))
            if Self.remove(steps, from: &root) {
                removed.insert(way)
                return true
            }
            steps = steps.dropLast()
        }
        return false
    }

    private static func remove(_ steps: ArraySlice<AppsFile.Step>, from node: inout Node) -> Bool {
        guard let step = steps.first else { return false }
        let rest = steps.dropFirst()
        switch (step, node) {
        case (.element(let index), .sequence(var list)) where list.indices.contains(index):
            if rest.isEmpty {
                list.remove(at: index)
            } else if !remove(rest, from: &list[index]) {
                return false
            }
            node = .sequence(list)
            return true
        case (.member(let name), .mapping(var mapping)):
            guard remove(name, rest, from: &mapping) else { return false }
            node = .mapping(mapping)
            return true
        default: return false
        }
    }

    private static func remove(
        _ name: String, _ rest: ArraySlice<AppsFile.Step>, from mapping: inout Node.Mapping
    ) -> Bool {
        if let (key, value) = mapping.first(where: { $0.key.string == name }) {
            if rest.isEmpty {
                mapping[key] = nil
                return true
            }
            var value = value
            guard remove(rest, from: &value) else { return false }
            mapping[key] = value
            return true
        }
        for (key, value) in Array(mapping) where key.string == "<<" {
            var value = value
            let isGone: Bool
            if case .sequence(var list) = value {
                isGone = list.indices.contains { remove([.member(name)] + rest, from: &list[$0]) }
                value = .sequence(list)
            } else {
                isGone = remove([.member(name)] + rest, from: &value)
            }
            if isGone {
                mapping[key] = value
                return true
            }
        }
        return false
    }
}
