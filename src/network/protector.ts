/**
 * The lowest layer of a connection. It accepts only the bytes with which libp2p negotiates noise, and encrypts all bytes
 * in private networks. The wire format is libp2p's pre-shared key network, version 1: each end sends a nonce of 24 bytes,
 * then its XSalsa20 stream.
 *
 * This replaces `@libp2p/pnet`, whose ciphers share one WebAssembly memory that is never released and that ends the process
 * once connections without the key have filled it.
 */
import type { AbortOptions, ConnectionProtector, Logger, MultiaddrConnection } from '@libp2p/interface'
import { AbstractMultiaddrConnection, byteStream, type SendResult } from '@libp2p/utils'
import { xsalsa20 } from '@noble/ciphers/salsa.js'
import { randomBytes } from '@noble/hashes/utils.js'
import type { Uint8ArrayList } from 'uint8arraylist'

/** Name of the error with which a connection between different network keys fails. */
export const protectionFailed = 'ProtectionFailedError'

const nonceBytes = 24
/** Limit of the bytes that are buffered until the nonces are exchanged. One read can deliver more than a nonce. */
const maxUnreadBytes = 1024 * 1024
/** Largest write to the transport. WebSocket listeners accept no larger messages. */
export const maxTransportMessageBytes = 256 * 1024
/** What both ends send first on every connection: the negotiation of noise. */
const preamble = new TextEncoder().encode('\x13/multistream/1.0.0\n\x07/noise\n')

interface Cipher {
  xor(data: Uint8Array): Uint8Array
}

/**
 * Encrypts connections with a network key. A connection ends at the first decrypted byte that libp2p would not have sent.
 * @param key 32 bytes
 */
export function networkKeyProtector(key: Uint8Array): ConnectionProtector {
  return {
    async protect(connection: MultiaddrConnection, options) {
      const log = connection.log.newScope('network-key')
      const localNonce = randomBytes(nonceBytes)
      const bytes = byteStream(connection, { maxBufferSize: maxUnreadBytes })
      try {
        const [remoteNonce] = await Promise.all([
          bytes.read({ ...options, bytes: nonceBytes }),
          bytes.write(localNonce, options)
        ])
        const outbound = new StreamCipher(key, localNonce)
        const inbound = new StreamCipher(key, remoteNonce.subarray())
        bytes.unwrap()
        return new ProtectedConnection(connection, outbound, inbound, log)
      } catch (error) {
        throw new ProtectionFailedError((error as Error).message)
      }
    }
  }
}

/**
 * Checks connections without a network key. A connection ends at the first byte that libp2p would not have sent. libp2p
 * itself would read a length prefix without end, one byte at a time, for as long as the upgrade may take.
 */
export function openProtector(): ConnectionProtector {
  const plain: Cipher = { xor: data => data }
  return {
    async protect(connection: MultiaddrConnection) {
      return new ProtectedConnection(connection, plain, plain, connection.log.newScope('preamble'))
    }
  }
}

class ProtectionFailedError extends Error {
  override readonly name = protectionFailed
}

class ProtectedConnection extends AbstractMultiaddrConnection {
  readonly #connection: MultiaddrConnection
  readonly #outbound: Cipher
  readonly #inbound: Cipher
  /** Bytes of the preamble that have arrived. */
  #checked = 0

  constructor(connection: MultiaddrConnection, outbound: Cipher, inbound: Cipher, log: Logger) {
    const { remoteAddr, direction } = connection
    super({ remoteAddr, direction, log, maxMessageSize: maxTransportMessageBytes })
    this.#connection = connection
    this.#outbound = outbound
    this.#inbound = inbound
    connection.addEventListener('message', ({ data }) => {
      for (const bytes of data instanceof Uint8Array ? [data] : data) this.#receive(bytes)
    })
    connection.addEventListener('drain', () => this.onMuxerDrain())
    connection.addEventListener('close', event => {
      if (event.error === undefined || event.error === null) this.onTransportClosed()
      else if (event.local) this.abort(event.error)
      else this.onRemoteReset()
    })
  }

  #receive(encrypted: Uint8Array): void {
    if (this.status !== 'open' && this.status !== 'closing') return
    try {
      const data = this.#inbound.xor(encrypted)
      for (let i = 0; i < data.length && this.#checked < preamble.length; i++) {
        if (data[i] !== preamble[this.#checked++]) throw new ProtectionFailedError('the network keys differ')
      }
      this.onData(data)
    } catch (error) {
      this.abort(error as Error)
    }
  }

  override sendData(data: Uint8ArrayList): SendResult {
    const encrypted = this.#outbound.xor(data.subarray())
    return { sentBytes: data.byteLength, canSendMore: this.#connection.send(encrypted) }
  }

  override sendReset(error: Error): void {
    this.#connection.abort(error)
  }

  override async sendClose(options?: AbortOptions): Promise<void> {
    await this.#connection.close(options)
  }

  override sendPause(): void {
    this.#connection.pause()
  }

  override sendResume(): void {
    this.#connection.resume()
  }
}

const blockBytes = 64
const zeroBlock = new Uint8Array(blockBytes)

/**
 * One direction of an encrypted connection: the XSalsa20 key stream, consumed in order. All state belongs to the instance
 * (a few hundred bytes), so it goes with the connection.
 *
 * A key stream ends after 256 GiB (2³² − 1 blocks); `xor` throws then, and the connection has to be replaced.
 */
export class StreamCipher {
  readonly #key: Uint8Array
  readonly #nonce: Uint8Array
  /** Key stream of the block that is partly used. */
  #block = zeroBlock
  /** Bytes of `#block` that are used; `blockBytes` if there are none left. */
  #used = blockBytes
  /** Number of the next block. */
  #counter = 0

  /**
   * @param key 32 bytes
   * @param nonce 24 bytes
   */
  constructor(key: Uint8Array, nonce: Uint8Array) {
    this.#key = key
    this.#nonce = nonce
  }

  /** Encrypts or decrypts the next bytes into a new array. */
  xor(data: Uint8Array): Uint8Array {
    const head = Math.min(blockBytes - this.#used, data.length)
    const whole = data.length - head - ((data.length - head) % blockBytes)
    // Whole blocks are processed in place and aligned to 4 bytes, which is several times faster.
    const padding = -head & 3
    const output = new Uint8Array(padding + data.length).subarray(padding)
    output.set(data)
    this.#xorPartialBlock(output.subarray(0, head))
    if (whole > 0) {
      const blocks = output.subarray(head, head + whole)
      xsalsa20(this.#key, this.#nonce, blocks, blocks, this.#counter)
      this.#counter += whole / blockBytes
    }
    if (head + whole < data.length) {
      this.#block = xsalsa20(this.#key, this.#nonce, zeroBlock, undefined, this.#counter++)
      this.#used = 0
      this.#xorPartialBlock(output.subarray(head + whole))
    }
    return output
  }

  #xorPartialBlock(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) bytes[i] ^= this.#block[this.#used++]
  }
}
