// SPDX-License-Identifier: Apache-2.0

import Apps
import ArgumentParser
import Contracts
import Crypto
import Foundation
import Glibc
import Observability
import Supervision
import WireJSON

struct ImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Brings users and profiles of another system.",
        discussion: """
            Reads JSON lines, {"userId": …} for a user and {"mpid": …} for a profile, or CSV, and sends them in lists. What \
            is in already is left as it is, so it may be done again. Exit status 0: all is in; 3: some were refused. What \
            was refused stands in the file of --errors with the reason, to be mended and fed again.
            """)

    @Argument(help: "The file; - for standard input.", completion: .file())
    var file: String

    @Option(help: "The app.")
    var app: AppID

    @Option(help: "The API key to sign with; it needs the scope `import`.")
    var keyId: KeyID

    @Flag(help: "Only ask what would happen, list by list. What a line would do to one of another list is not seen.")
    var dryRun = false

    @Flag(help: "Add to who is known what is not known of them; nobody who was seen since is moved.")
    var upsert = false

    @Flag(help: "Publish no events of it.")
    var noEvents = false

    @Option(help: "Keeps how far it is; the same line goes on from there.", completion: .file())
    var resume: String?

    @Option(help: "Gets what is refused, with the reason.", completion: .file())
    var errors: String?

    enum Format: String, CaseIterable, ExpressibleByArgument { case jsonl, csv }

    @Option(help: "Default: csv for a file whose name ends so, else jsonl.")
    var format: Format?

    @Option(parsing: .unconditional, help: "Seconds to wait for the answer to a list.", transform: parsedSeconds)
    var wait = 120.0

    @Flag(help: "Print the counts as one JSON line.")
    var json = false

    @OptionGroup var deployment: Deployment

    func run() throws {
        try deployment.refuseUnknown(app)
        try checkFiles()
        let profilesFirst = (try? deployment.app(app).sync.fromLinks) ?? false
        var state = try begun()
        let reader = try openReader(&state)
        if state.isDone, size.map({ state.offset >= $0 }) ?? true {
            complain("All of it was sent before; another --resume begins anew.")
            return try finish(state)
        }
        if profilesFirst, file != "-", state.offset == 0 { try checkOrder() }
        let interruption = Interruption()
        let post = try ImportPost(
            deployment, app: app, keyID: keyId, isDryRun: dryRun, patience: .seconds(wait)
        ) { interruption.isRequested }
        defer { post.close() }
        let errors = try errors.map { path in
            try ImportErrors(path: path, header: state.header, length: state.errorBytes)
        }
        // With events, the answer to a dry run would have them all.
        let events = dryRun ? profilesFirst : !noEvents
        let run = ImportRun(
            state, .init(profilesFirst: profilesFirst, events: events, resume: resume), reader, post, errors,
            total: size)
        do {
            try run.run { interruption.isRequested }
        } catch {
            var problem = Problem(error)
            problem.advice.append(
                resume == nil
                    ? "\(run.state.all) are answered. The same line again finds them in already."
                    : "\(run.state.all) are answered. The same line goes on from there.")
            throw problem
        }
        try finish(run.state)
    }

    /// - Throws: for what would write over what it reads.
    private func checkFiles() throws {
        let paths = [file, resume, errors].compactMap(\.self).filter { $0 != "-" }
        let whole = paths.map { URL(filePath: $0).standardizedFileURL.path }
        guard Set(whole).count == whole.count else {
            throw Problem(.usage, "the input, --resume and --errors are files of their own.", "Nothing was sent.")
        }
    }

    private var size: Int? {
        var facts = stat()
        guard file != "-", stat(file, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(facts.st_size)
    }

    private func begun() throws -> ImportState {
        let new = ImportState(
            run: UUID().uuidString.lowercased(), app: app.text, upsert: upsert, dryRun: dryRun)
        guard let resume, let state = try ImportState.read(resume) else { return new }
        guard state.app == app.text, state.upsert == upsert, state.dryRun == dryRun else {
            throw Problem(
                .usage, "\(resume) is of an import with another --app, --upsert or --dry-run.",
                "Give what was given then, or another --resume to begin anew.")
        }
        return state
    }

    private var isCSV: Bool { format.map { $0 == .csv } ?? file.lowercased().hasSuffix(".csv") }

    /// The input from where the run before was.
    private func openReader(_ state: inout ImportState) throws -> any ImportReader {
        let lines = try LineReader(path: file, from: state.offset, line: state.line)
        // Another one would be taken up in its middle.
        guard state.offset == 0 || lines.digest.finalize().hex == state.digest else {
            throw Problem(
                .usage, "\(file == "-" ? "standard input" : file) is not what \(resume ?? "") is about.",
                "Before line \(state.line), where that import was, it has changed. Another --resume begins anew; "
                    + "what is in already stays as it is.")
        }
        guard isCSV else { return JSONLinesReader(lines) }
        let reader = try CSVReader(lines, header: state.offset > 0 ? state.header : nil)
        state.header = reader.header
        return reader
    }

    /// Before anything is sent.
    private func checkOrder() throws {
        var unread = ImportState(run: "", app: "", upsert: false, dryRun: false)
        var reader = try openReader(&unread)
        var user: Int?
        while let item = try reader.next() {
            if item.kind == .users, user == nil { user = item.line }
            guard item.kind == .profiles, let user else { continue }
            throw Problem(
                .usage,
                "line \(item.line) has a profile behind the user of line \(user), and the app has `fromLinks`.",
                "Nothing was sent. There, profiles come first (docs/sync.md, \"Import\").")
        }
    }

    private func finish(_ state: ImportState) throws {
        let kinds = state.counts.sorted { $0.key < $1.key }
        if json {
            func members(_ counts: ImportState.Counts) -> JSONValue {
                [
                    "created": .number(JSONNumber(counts.created)), "same": .number(JSONNumber(counts.same)),
                    "changed": .number(JSONNumber(counts.changed)), "refused": .number(JSONNumber(counts.refused)),
                ]
            }
            say(json: .object(JSONObject(kinds.map { ($0.key, members($0.value)) })))
        } else {
            let rows = kinds.map { kind, counts in
                [
                    kind, "\(counts.all)", "created \(counts.created)", "same \(counts.same)",
                    "changed \(counts.changed)", "refused \(counts.refused)",
                ]
            }
            for line in Terminal.table(rows) { say(line) }
            if dryRun { complain("Nothing was done (--dry-run).") }
        }
        if state.refused > 0 {
            if let errors { complain("What was refused stands in \(errors).".harmless) }
            throw ExitCode(ExitStatus.refused.rawValue)
        }
    }
}
