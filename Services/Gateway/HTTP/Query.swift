// SPDX-License-Identifier: Apache-2.0

/// What the query of a request says, where an endpoint reads one. What it does not read is refused: a misspelt `dryRun`
/// would be carried out.
struct Query: Sendable {
    enum Parameter: String, Sendable, CaseIterable {
        /// `true`: decided and told, and nothing is done.
        case dryRun
        /// Where the page before ended.
        case after
        /// Of a command's id: where it was sent from.
        case source
        /// Of the identity vendor: what the answer shall have.
        case fields
        /// Of OpenDSR: requests that belong together.
        case groupID = "group_id"
    }

    private(set) var values: [Parameter: String] = [:]

    subscript(_ parameter: Parameter) -> String? { values[parameter] }

    init() {}

    /// - Parameter parameters: what may stand in it; `nil`: it is not read.
    /// - Throws: `INVALID_REQUEST`.
    init(_ text: String?, _ parameters: Set<Parameter>?) throws(APIFailure) {
        guard let parameters, let text else { return }
        for part in text.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let parameter = Parameter(rawValue: String(pair[0])), parameters.contains(parameter) else {
                let known = parameters.map(\.rawValue).sorted().joined(separator: ", ")
                throw .invalid(
                    known.isEmpty
                        ? "This call reads no query; leave it out." : "The query may have \(known), and nothing else.")
            }
            guard values[parameter] == nil else { throw .invalid("\(parameter.rawValue) is given twice.") }
            guard pair.count == 2, let value = pair[1].percentDecoded, !value.isEmpty else {
                throw .invalid("\(parameter.rawValue) has no value that can be read.")
            }
            values[parameter] = value
        }
        guard ["true", "false", nil].contains(values[.dryRun]) else {
            throw .invalid("dryRun is neither true nor false.")
        }
    }

    var isDryRun: Bool { values[.dryRun] == "true" }
}
