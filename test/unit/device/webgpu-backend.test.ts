/** Handling of asynchronously reported WebGPU errors, on a simulated GPU with a hundred bytes of memory. */
import assert from 'node:assert/strict'
import { BackendError } from '../../../src/device/index.js'
import { DawnEvents, patchBackend, type WebgpuBackend } from '../../../src/device/webgpu-backend.js'

const CAPACITY = 100

type Listener = Parameters<WebgpuBackend['device']['addEventListener']>[1]

/** Buffers and their manager behave like those of TensorFlow.js. */
function smallGpu() {
  let taken = 0
  let listener: Listener = () => undefined
  const report = (message: string) => listener({ error: { message }, preventDefault: () => undefined })
  const create = (size: number) => {
    const isThere = taken + size <= CAPACITY
    if (isThere) taken += size
    else report(`out of memory: ${size} bytes\n - while calling createBuffer`)
    const destroy = () => {
      if (isThere) taken -= size
    }
    return { size, destroy }
  }
  const manager = {
    numBytesAllocated: 0,
    numFreeBuffers: 0,
    freeBuffers: new Map<string, ReturnType<typeof create>[]>(),
    acquireBuffer(bytes: number): ReturnType<typeof create> {
      const free = this.freeBuffers.get(`${bytes}`)
      if (free?.length) {
        this.numFreeBuffers--
        return free.pop() as ReturnType<typeof create>
      }
      if (free === undefined) this.freeBuffers.set(`${bytes}`, [])
      this.numBytesAllocated += bytes
      return create(bytes)
    },
    releaseBuffer(buffer: ReturnType<typeof create>, isKept = true) {
      if (isKept) {
        this.numFreeBuffers++
        this.freeBuffers.get(`${buffer.size}`)?.push(buffer)
      } else {
        this.numBytesAllocated -= buffer.size
        buffer.destroy()
      }
    }
  }
  const done: string[] = []
  let isFaulty = false
  const backend = {
    device: {
      addEventListener(_: string, given: Listener) {
        listener = given
      }
    },
    bufferManager: manager,
    commandEncoder: {},
    endComputePassEncoder: () => undefined,
    submitQueue() {
      // Commands recorded with a faulty one fail, too.
      if (isFaulty) report('the command buffer is invalid')
      isFaulty = false
      done.push('submitted')
    },
    write: (_values: Float32Array) => ({ name: 'written' }),
    uploadToGPU() {
      manager.acquireBuffer(4)
    },
    disposeData: (id: { name: string }) => done.push(`disposed of ${id.name}`),
    runWebGPUProgram(name: string) {
      if (name === 'faulty') {
        isFaulty = true
        report('the shader does not compile')
      }
      return { dataId: { name } }
    }
  }
  const peakBytes = patchBackend(backend as unknown as WebgpuBackend, new DawnEvents())
  return { backend, manager, peakBytes, done, taken: () => taken }
}

describe('a small GPU', () => {
  it('frees unused buffers if an allocation fails', () => {
    const { manager, peakBytes, done, taken } = smallGpu()
    const kept = manager.acquireBuffer(40)
    manager.releaseBuffer(manager.acquireBuffer(50))
    assert.equal(taken(), 90)
    manager.releaseBuffer(manager.acquireBuffer(60))
    // Recorded commands may use a released buffer.
    assert.deepEqual(done, ['submitted'])
    assert.equal(taken(), 100)
    assert.equal(manager.numFreeBuffers, 1)
    assert.equal(manager.numBytesAllocated, 100)
    assert.equal(peakBytes(), 100)
    manager.releaseBuffer(kept)
  })

  it('throws if there is no memory, and is unchanged afterwards', () => {
    const { manager, peakBytes, taken } = smallGpu()
    manager.acquireBuffer(70)
    for (let time = 0; time < 2; time++) {
      assert.throws(() => manager.acquireBuffer(50), {
        constructor: BackendError,
        message: 'out of memory: 50 bytes'
      })
      assert.equal(taken(), 70)
      assert.equal(manager.numBytesAllocated, 70)
    }
    manager.acquireBuffer(30)
    assert.equal(peakBytes(), 100)
  })

  it('uploads tensors immediately, and drops those that do not fit', () => {
    const { backend, manager, done, taken } = smallGpu()
    const values = Float32Array.of(1)
    backend.write(values)
    assert.equal(taken(), 4)
    manager.acquireBuffer(95)
    assert.throws(() => backend.write(values), BackendError)
    assert.equal(done.at(-1), 'disposed of written')
    assert.equal(taken(), 99)
  })

  it('throws if a program fails, and drops the commands recorded with it', () => {
    const { backend, done } = smallGpu()
    backend.runWebGPUProgram('sound')
    assert.throws(() => backend.runWebGPUProgram('faulty'), /^BackendError: the shader does not compile$/)
    assert.deepEqual(done, ['disposed of faulty', 'submitted'])
    backend.runWebGPUProgram('sound')
  })
})
