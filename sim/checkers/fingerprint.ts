/** A predictor's bits as one number, made without the digest that the algorithm itself trusts. */
import type { Predictor } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learner/index.js'

/** 53 bits over parameters, average and rule state: two rounds of multiply and shift (as in MurmurHash3's body) side by side. */
export function fingerprint({ parameters, average, state }: Predictor): number {
  let high = 0x2f0b4c47
  let low = 0x51ed270b
  const take = (blocks: Blocks) => {
    for (const block of blocks) {
      const words = new Uint32Array(block.buffer, block.byteOffset, block.length)
      for (let i = 0; i < words.length; i++) {
        low = Math.imul(low ^ words[i], 0xcc9e2d51)
        low ^= low >>> 15
        high = Math.imul(high ^ (words[i] + low), 0x1b873593)
        high ^= high >>> 13
      }
    }
  }
  take(parameters)
  take(average)
  take(state)
  return (high >>> 11) * 2 ** 32 + (low >>> 0)
}
