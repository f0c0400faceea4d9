import { xsalsa20 } from '@noble/ciphers/salsa.js'

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
