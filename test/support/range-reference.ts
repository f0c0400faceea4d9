/** A plain decoder of encoding 4, with exact numbers, as `docs/reference/protocol.md` specifies the format. */

/** @param bytes of the range code @param count number of elements that are not 0 @param length of the block */
export function referenceBlock(bytes: Uint8Array, count: number, length: number): Float32Array {
  const block = new Float32Array(length)
  const contexts = Array.from({ length: 128 }, () => ({ p: 2048, bits: 0 }))
  let at = 0
  const byte = () => BigInt(bytes[at++] ?? 0)
  let range = 2n ** 32n - 1n
  let code = 0n
  for (let i = 0; i < 4; i++) code = code * 256n + byte()
  const choose = (p: number, s: number): number => {
    const bound = (range / 2n ** BigInt(s)) * BigInt(p)
    const bit = code < bound ? 0 : 1
    if (bit === 0) range = bound
    else [code, range] = [code - bound, range - bound]
    while (range < 2n ** 24n) [range, code] = [range * 256n, code * 256n + byte()]
    return bit
  }
  const modelled = (context: number): number => {
    const one = contexts[context]
    const bit = choose(one.p, 12)
    const q = [2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4][one.bits++] ?? 5
    one.p += bit === 0 ? Math.floor((4096 - one.p) / 2 ** q) : -Math.floor(one.p / 2 ** q)
    return bit
  }
  const rest = (j: number, context: number): number => {
    let value = 1
    for (let i = 0; i < j; i++) value = 2 * value + (i === 0 ? modelled(context + j) : choose(1, 1))
    return value
  }
  let next = 0
  for (let n = 0; n < count; n++) {
    let path = 1
    for (let i = 0; i < 5; i++) path = 2 * path + modelled(path)
    next += rest(path - 32, 32)
    const sign = choose(1, 1) === 1 ? -1 : 1
    let j = 0
    while (modelled(64 + j) === 1) j++
    block[next - 1] = sign * rest(j, 96)
  }
  return block
}
