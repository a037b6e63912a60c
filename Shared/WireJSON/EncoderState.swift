// SPDX-License-Identifier: Apache-2.0

/// The text written so far and what is open in it.
///
/// Each value being encoded has a level. Only the newest level can be written to: containers remember the id
/// of theirs, so that one kept for too long fails instead of spoiling the text.
struct EncoderState {
    /// What a level has turned out to be.
    enum Kind {
        case undecided, object, array, finished
    }

    /// One value being encoded.
    struct Level {
        let id: Int
        let start: Int
        let firstName: Int
        var kind = Kind.undecided
        var isEmpty = true
        var marks: UInt64 = 0
    }

    /// The place of a member: its name in quotes begins at `start` and its colon stands at `colon`.
    struct Name {
        var start: Int
        var colon: Int
    }

    /// What came of writing a member.
    enum Outcome {
        case written, closed, repeated
    }

    /// Everything needed to take back a member or element that failed half way.
    struct Mark {
        let byteCount: Int
        let nameCount: Int
        let depth: Int
        let level: Level
    }

    private var bytes: [UInt8]
    private(set) var level: Level
    private var enclosing = ShortStack<8, Level>(filler: Level(id: 0, start: 0, firstName: 0))
    /// The members written to the present level and to the levels around it.
    private var names = ShortStack<24, Name>(filler: Name(start: 0, colon: 0))
    /// The unescaped `names`, for sorting; empty unless keys are sorted.
    private var texts: [String] = []
    private var children: [(offset: Int, output: EncoderOutput)] = []
    private var lastID = 0
    private var isMisused = false
    let sortedKeys: Bool

    /// - Parameter bytes: what stands in front of the value.
    init(sortedKeys: Bool, after bytes: consuming [UInt8]) {
        self.sortedKeys = sortedKeys
        level = Level(id: 0, start: bytes.count, firstName: 0)
        self.bytes = bytes
    }

    /// Whether level `id` can be written to as `kind`.
    @inline(__always)
    func isOpen(_ id: Int, as kind: Kind) -> Bool {
        level.id == id && level.kind == kind
    }

    /// Makes level `id` an object or an array; asking twice for the same is allowed, as superclasses do it.
    mutating func open(_ id: Int, as kind: Kind) {
        if isOpen(id, as: kind) { return }
        guard isOpen(id, as: .undecided) else {
            isMisused = true
            return
        }
        level.kind = kind
        bytes.append(kind == .object ? UInt8(ascii: "{") : UInt8(ascii: "["))
    }

    /// Writes a member's name; false, with nothing written, when the name was used before.
    @inline(__always)
    mutating func beginMember(_ name: String) -> Bool {
        if level.isEmpty { level.isEmpty = false } else { bytes.append(UInt8(ascii: ",")) }
        let start = bytes.count
        JSONWriter.append(name, to: &bytes)
        let colon = bytes.count
        bytes.append(UInt8(ascii: ":"))
        names.append(Name(start: start, colon: colon))
        if sortedKeys { texts.append(name) }
        // A bit made from the length and the outer letters; only when it is taken are names compared.
        let outer = Int(bytes[start &+ 1]) &+ Int(bytes[colon &- 2]) &* 7
        let mark: UInt64 = 1 &<< UInt64(truncatingIfNeeded: outer &+ (colon &- start) &* 5)
        if level.marks & mark != 0 { return keepLastNameIfNew() }
        level.marks |= mark
        return true
    }

    /// Compares the name written last with the others of its object, and takes it back if it is among them.
    @inline(never)
    private mutating func keepLastNameIfNew() -> Bool {
        let last = names[names.count - 1]
        let text = bytes[last.start..<last.colon]
        let isRepeated = (level.firstName..<names.count - 1).contains { index in
            let name = names[index]
            return name.colon - name.start == text.count && bytes[name.start..<name.colon].elementsEqual(text)
        }
        guard isRepeated else { return true }
        // The repeated name is not the first, so a comma stands in front of it.
        bytes.removeLast(bytes.count - last.start + 1)
        dropNames(to: names.count - 1)
        return false
    }

    /// Writes a member with a scalar value to level `id`; nothing is written unless the outcome is `written`.
    @inline(__always)
    mutating func member(_ id: Int, _ name: String, _ body: (inout [UInt8]) -> Void) -> Outcome {
        guard isOpen(id, as: .object) else { return .closed }
        guard beginMember(name) else { return .repeated }
        body(&bytes)
        return .written
    }

    /// Makes `finish` fail.
    mutating func reportMisuse() {
        isMisused = true
    }

    /// Forgets all but the first `count` names.
    @inline(__always)
    private mutating func dropNames(to count: Int) {
        names.removeLast(to: count)
        if sortedKeys { texts.removeLast(texts.count - count) }
    }

    /// Writes the comma in front of an element.
    @inline(__always)
    mutating func beginElement() {
        if level.isEmpty { level.isEmpty = false } else { bytes.append(UInt8(ascii: ",")) }
    }

    /// Makes the present level a complete scalar.
    @inline(__always)
    mutating func beginScalar() {
        level.kind = .finished
    }

    @inline(__always)
    mutating func write(_ body: (inout [UInt8]) -> Void) {
        body(&bytes)
    }

    @inline(__always)
    func mark() -> Mark {
        Mark(byteCount: bytes.count, nameCount: names.count, depth: enclosing.count, level: level)
    }

    /// Takes back everything since `mark`.
    mutating func rollBack(to mark: Mark) {
        bytes.removeLast(bytes.count - mark.byteCount)
        dropNames(to: mark.nameCount)
        enclosing.removeLast(to: mark.depth)
        children.removeAll { $0.offset > mark.byteCount }
        level = mark.level
    }

    /// Starts a value of its own inside the present level and returns its id.
    mutating func push() -> Int {
        enclosing.append(level)
        lastID &+= 1
        level = Level(id: lastID, start: bytes.count, firstName: names.count)
        return lastID
    }

    /// Ends the value that `push` started.
    mutating func pop() throws {
        try close()
        level = enclosing.popLast() ?? level
    }

    /// Sets aside a value that is written to its own output and inserted here when this level closes.
    mutating func insertLater(_ output: EncoderOutput) {
        children.append((bytes.count, output))
    }

    /// Ends the document and gives its text, behind what stood in front of it.
    mutating func finish() throws -> [UInt8] {
        try close()
        return take()
    }

    /// Gives up the text.
    mutating func take() -> [UInt8] {
        var text: [UInt8] = []
        swap(&text, &bytes)
        return text
    }

    /// Ends the present level; one that wrote nothing at all is an empty object.
    private mutating func close() throws {
        if isMisused {
            throw EncodingError.invalidValue(
                "",
                EncodingError.Context(
                    codingPath: [], debugDescription: "a value asked for two kinds of container"))
        }
        if let last = children.last, last.offset >= level.start { try insertChildren() }
        switch level.kind {
        case .undecided: bytes.append(contentsOf: "{}".utf8)
        case .object:
            if sortedKeys { sortMembers() }
            bytes.append(UInt8(ascii: "}"))
        case .array: bytes.append(UInt8(ascii: "]"))
        case .finished: break
        }
        dropNames(to: level.firstName)
        level.kind = .finished
    }

    /// Puts the text of nested containers where they were asked for.
    private mutating func insertChildren() throws {
        let first = children.firstIndex { $0.offset >= level.start } ?? children.count
        var rebuilt: [UInt8] = []
        var copied = level.start
        var shift = 0
        var nameIndex = level.firstName
        for child in children[first...] {
            while nameIndex < names.count, names[nameIndex].start < child.offset {
                names[nameIndex].start += shift
                names[nameIndex].colon += shift
                nameIndex += 1
            }
            let text = try child.output.finish()
            rebuilt.append(contentsOf: bytes[copied..<child.offset])
            rebuilt.append(contentsOf: text)
            copied = child.offset
            shift += text.count
        }
        for index in nameIndex..<names.count {
            names[index].start += shift
            names[index].colon += shift
        }
        rebuilt.append(contentsOf: bytes[copied...])
        bytes.replaceSubrange(level.start..., with: rebuilt)
        children.removeSubrange(first...)
    }

    /// Rearranges the members of the present level, an object that lacks only its closing brace.
    private mutating func sortMembers() {
        let own = level.firstName..<names.count
        guard own.count > 1 else { return }
        let begin = names[own.lowerBound].start
        var pieces: [(text: String, range: Range<Int>)] = []
        for index in own {
            // A member reaches to the comma in front of the next one.
            let end = index + 1 < own.upperBound ? names[index + 1].start - 1 : bytes.count
            pieces.append((texts[index], names[index].start..<end))
        }
        pieces.sort { JSONText.precedes($0.text, $1.text) }
        var rebuilt: [UInt8] = []
        rebuilt.reserveCapacity(bytes.count - begin)
        for piece in pieces {
            if !rebuilt.isEmpty { rebuilt.append(UInt8(ascii: ",")) }
            rebuilt.append(contentsOf: bytes[piece.range])
        }
        bytes.replaceSubrange(begin..., with: rebuilt)
    }
}

/// A stack whose first elements need no memory of their own.
struct ShortStack<let short: Int, Element> {
    private var first: InlineArray<short, Element>
    private var rest: [Element] = []
    private(set) var count = 0

    /// - Parameter filler: any element; it stands where none is.
    init(filler: Element) { first = InlineArray(repeating: filler) }

    subscript(index: Int) -> Element {
        @inline(__always) get { index < short ? first[index] : rest[index - short] }
        @inline(__always) set {
            if index < short { first[index] = newValue } else { rest[index - short] = newValue }
        }
    }

    @inline(__always)
    mutating func append(_ element: Element) {
        if count < short { first[count] = element } else { rest.append(element) }
        count &+= 1
    }

    /// Keeps the first `count` elements.
    @inline(__always)
    mutating func removeLast(to count: Int) {
        if self.count > short { rest.removeLast(self.count - max(count, short)) }
        self.count = count
    }

    @inline(__always)
    mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        let last = self[count - 1]
        removeLast(to: count - 1)
        return last
    }
}
