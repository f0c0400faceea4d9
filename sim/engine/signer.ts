/**
 * Signatures of simulated nodes: a hash with a key for each node. Verification computes it again, so it is as strong as the rule that
 * a node signs only with its own signer.
 */
import type { Signer } from '../../src/admb/index.js'

const encoder = new TextEncoder()

export function simulatedSigner(self: string): Signer {
  const sign = (origin: string, bytes: Uint8Array) => wide(64, encoder.encode(`${origin}\n`), bytes)
  return {
    sign: bytes => sign(self, bytes),
    verify: (origin, bytes, signature) => sign(origin, bytes).every((byte, i) => byte === signature[i]),
    hash: bytes => wide(16, bytes)
  }
}

/** A hash of `size` bytes, a multiple of 16: four lanes of multiply and shift for the first 16, from which the others follow. */
function wide(size: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const lanes = Uint32Array.of(0x2f0b4c47, 0x51ed270b, 0x6a09e667, 0x3c6ef372)
  for (const part of parts) {
    for (let i = 0; i < part.length; i++) mix(lanes, i & 3, part[i])
    mix(lanes, 0, part.length)
  }
  const hash = new Uint32Array(size / 4)
  for (let i = 0; i < hash.length; i++) {
    for (let lane = 0; lane < 4; lane++) mix(lanes, lane, i)
    hash[i] = lanes[i & 3]
  }
  return new Uint8Array(hash.buffer)
}

function mix(lanes: Uint32Array, lane: number, value: number): void {
  const mixed = Math.imul(lanes[lane] ^ value ^ lanes[(lane + 1) & 3], 0xcc9e2d51)
  lanes[lane] = mixed ^ (mixed >>> 15)
}
