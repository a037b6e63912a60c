// SPDX-License-Identifier: Apache-2.0

import CZstd

/// Receipts are short and much alike: zstd with a dictionary packs them to a fifth, in a few microseconds. Confined to
/// its thread, as the loop is.
public final class ReceiptPacking {
    /// A receipt is not larger: a reply is at most some KiB.
    private static let limit = 64 << 20
    private static let level: Int32 = 3

    private let compression: OpaquePointer
    private let decompression: OpaquePointer

    public init() {
        let dictionary = ReceiptDictionary.bytes
        guard let compression = ZSTD_createCCtx(), let decompression = ZSTD_createDCtx() else {
            preconditionFailure("zstd cannot be used: out of memory")
        }
        (self.compression, self.decompression) = (compression, decompression)
        // The contexts keep copies. One dictionary for all, so no receipt names it.
        Self.check(ZSTD_CCtx_setParameter(compression, ZSTD_c_compressionLevel, Self.level))
        Self.check(ZSTD_CCtx_setParameter(compression, ZSTD_c_dictIDFlag, 0))
        Self.check(ZSTD_CCtx_loadDictionary(compression, dictionary, dictionary.count))
        Self.check(ZSTD_DCtx_loadDictionary(decompression, dictionary, dictionary.count))
    }

    deinit {
        ZSTD_freeCCtx(compression)
        ZSTD_freeDCtx(decompression)
    }

    /// The prefix, and behind it the text packed.
    func packed(_ text: [UInt8], after prefix: [UInt8]) -> [UInt8] {
        // There is room for all of it, so it cannot fail.
        let bound = ZSTD_compressBound(text.count)
        return [UInt8](unsafeUninitializedCapacity: prefix.count + bound) { buffer, count in
            _ = buffer.update(fromContentsOf: prefix)
            let place = buffer.baseAddress.map { $0 + prefix.count }
            count = prefix.count + Self.check(ZSTD_compress2(compression, place, bound, text, text.count))
        }
    }

    /// - Throws: `OutboxCodec.Corrupted` for bytes that ``packed(_:after:)`` did not write.
    func unpacked(_ packed: ArraySlice<UInt8>) throws(OutboxCodec.Corrupted) -> [UInt8] {
        let text = packed.withUnsafeBufferPointer { packed -> [UInt8]? in
            let size = ZSTD_getFrameContentSize(packed.baseAddress, packed.count)
            guard size <= UInt64(Self.limit) else { return nil }
            var result = 0
            let text = [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
                result = ZSTD_decompressDCtx(
                    decompression, buffer.baseAddress, Int(size), packed.baseAddress, packed.count)
                count = ZSTD_isError(result) == 0 ? result : 0
            }
            return ZSTD_isError(result) == 0 ? text : nil
        }
        guard let text else { throw OutboxCodec.Corrupted() }
        return text
    }

    @discardableResult
    private static func check(_ result: Int) -> Int {
        precondition(ZSTD_isError(result) == 0, "zstd: \(String(cString: ZSTD_getErrorName(result)))")
        return result
    }
}
