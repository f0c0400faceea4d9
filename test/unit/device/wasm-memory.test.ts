/** Failed allocations on the wasm heap are errors. */
import assert from 'node:assert/strict'
import { DeviceError } from '../../../src/device/index.js'
import { guardHeap, type Heap } from '../../../src/device/wasm-memory.js'

describe('the guard of the wasm heap', () => {
  /** A heap that replaces `_malloc` at its first call, as the real heap does. */
  function heapOf(size: number, addresses: number[]): Heap & { readonly freed: number[] } {
    const heap = {
      freed: [] as number[],
      HEAPU8: { length: size },
      _malloc: (): number => {
        heap._malloc = () => addresses.shift() ?? 0
        return 16
      },
      _free: (address: number) => void heap.freed.push(address)
    }
    return heap
  }

  it('returns addresses, and throws for address 0', () => {
    const heap = heapOf(2 ** 20, [64, 128])
    guardHeap(heap)
    guardHeap(heap)
    assert.equal(heap._malloc(8), 64)
    assert.equal(heap._malloc(8), 128)
    assert.throws(() => heap._malloc(8), DeviceError)
    assert.deepEqual(heap.freed, [16])
  })

  it('frees an allocation in a heap that has become too large', () => {
    const heap = heapOf(3.5 * 2 ** 30, [64])
    guardHeap(heap)
    assert.throws(() => heap._malloc(8), /out of memory \(heap size 3584 MB\)/)
    assert.deepEqual(heap.freed, [16, 64])
  })
})
