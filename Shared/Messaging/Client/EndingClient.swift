// SPDX-License-Identifier: Apache-2.0

internal import CLibrdkafka

/// A client on its way to the thread that ends it.
///
/// `@unchecked Sendable` is safe: the value is made by ``ClientHandle/destroy(timeout:)``, which gives up the pointer
/// in the same breath (nothing uses it afterwards), and is used once, by one thread. librdkafka allows destroying from
/// any thread that is not its own. The callbacks are kept alive until the client's last thread, which may still log,
/// is gone.
struct EndingClient: @unchecked Sendable {
    let pointer: OpaquePointer
    let callbacks: Unmanaged<ClientCallbacks>

    func end() {
        rd_kafka_destroy_flags(pointer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE)
        callbacks.release()
    }
}
