// SPDX-License-Identifier: Apache-2.0

public import WireJSON

/// A command with a list of people from another system. One of them never fails the others.
public protocol ImportCommand: CommandMessage {
    associatedtype Element: ImportedElement

    var elements: [ListElement<Element>] { get }
    /// Adds to who is known what is not known of them. Absent: who is known otherwise is a conflict.
    var upsert: Bool? { get }
    /// `false`: nothing is told of it. Absent: `true`.
    var events: Bool? { get }
}

/// One person of a list.
public protocol ImportedElement: Codable, WireReadable, WireWritable, Sendable, Hashable {
    /// Whom it is about, where it can be a part of a Kafka key.
    var subject: String? { get }
    /// What is wrong with it whatever is known; `nil` when nothing is.
    var problem: String? { get }
    /// Adds all that it says.
    func add(to digest: inout ElementDigest)
}

extension ImportedElement {
    /// What it says, as a number: the same element again has the same.
    public var fingerprint: Int64 {
        var digest = ElementDigest()
        add(to: &digest)
        return digest.number
    }
}

/// What all lists have in common.
public enum ImportList {
    /// More are refused. With elements of usual size that is a third of what a message may have.
    public static let most = 500
    /// A clock may be this much ahead, in milliseconds.
    public static let clockTolerance: Int64 = 3_600_000

    /// The types of such commands: what is decided on them is about many people.
    public static let types: Set<String> = [ImportUsers.type, ImportProfiles.type]
}

extension ImportCommand {
    public var partitionSubject: String {
        for case .read(let element) in elements { if let subject = element.subject { return subject } }
        return "import"
    }

    /// How many elements there are. What is wrong with one is told of that one.
    public func validate() throws(Rejection) {
        guard (1...ImportList.most).contains(elements.count) else {
            throw Rejection(
                .invalidRequest, "data has \(elements.count) elements; 1 to \(ImportList.most) are allowed.")
        }
    }
}

/// An element of a list, or what stands in its place.
public enum ListElement<Element: ImportedElement>: Codable, WireReadable, WireWritable, Sendable, Hashable {
    case read(Element)
    /// It is not such an element, and why.
    case unreadable(JSONValue, String)

    public init(from decoder: any Decoder) throws {
        do {
            self = .read(try Element(from: decoder))
        } catch {
            self = .unreadable(try JSONValue(from: decoder), WireJSONError.explain(error))
        }
    }

    /// Why an element cannot be read is said with its place in the list, which only the list's decoder knows.
    public init?(usual view: JSONView) {
        guard let element = Element(usual: view) else { return nil }
        self = .read(element)
    }

    public func encode(to encoder: any Encoder) throws {
        switch self {
        case .read(let element): try element.encode(to: encoder)
        case .unreadable(let value, _): try value.encode(to: encoder)
        }
    }

    public func write(to json: inout JSONOutput) throws {
        switch self {
        case .read(let element): try element.write(to: &json)
        case .unreadable(let value, _): value.write(to: &json)
        }
    }
}

extension Decoder {
    /// A member that nobody reads is a mistake of whoever wrote the file: what it says would be lost.
    func refuseUnknownMembers<Key: CodingKey & CaseIterable>(but _: Key.Type) throws {
        let names = try container(keyedBy: AnyKey.self).allKeys.map(\.stringValue)
        guard let unknown = names.first(where: { name in !Key.allCases.contains { $0.stringValue == name } }) else {
            return
        }
        throw DecodingError.dataCorrupted(
            .init(codingPath: codingPath, debugDescription: "\(unknown.prefix(40)) is not a member"))
    }
}

extension ImportResult.Element {
    /// Five hundred of them are one reply.
    public init(index: Int, invalid message: String) {
        self.init(index: index, outcome: .invalid, message: String(message.prefix(160)))
    }
}
