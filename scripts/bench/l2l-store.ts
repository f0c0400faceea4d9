/**
 * Training with weights and optimizer state on the disk beside training in memory, in separate processes, with a quarter of the
 * model's bytes or less in memory. A step reads the weights twice and the state once, and writes both, so that the bandwidth
 * of the disk is a bound of its time. Takes 6 GB of disk and of memory, and ten minutes.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fdatasyncSync, mkdtempSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openLayers } from '../../src/l2l/store/layer-file.js'
import type { StoreResult, StoreRun } from './l2l-store-alone.js'
import type { Row } from './row.js'

const MODEL = { width: 768, layers: 32, length: 32, steps: 4 }
const HOST_MEMORY = 250e6
const BATCHES = [1, 8]

export async function* bench(): AsyncGenerator<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'admb-bench-'))
  try {
    const { write, read } = bandwidth(folder)
    yield { name: 'bandwidth of the disk, writing', value: write / 1e6, unit: 'MB/s' }
    yield { name: 'bandwidth of the disk, reading', value: read / 1e6, unit: 'MB/s' }
    for (const batch of BATCHES) {
      const memory = await resultOf({ ...MODEL, batch })
      const disk = await resultOf({ ...MODEL, batch, folder: join(folder, String(batch)), hostMemory: HOST_MEMORY })
      rmSync(join(folder, String(batch)), { recursive: true })
      // Three arrays (weights and Adam's state) are read and written, and the weights read once more.
      const bytes = disk.modelBytes
      const boundMs = 1000 * (((4 / 3) * bytes) / read + bytes / write)
      const least = Math.min(0.5, memory.stepMs / boundMs)
      yield {
        name: `speed on the disk relative to memory, batch ${batch}`,
        value: memory.stepMs / disk.stepMs,
        unit: 'times',
        target: { least },
        details: {
          backend: disk.backend,
          weights: disk.weights,
          stepMs: [memory.stepMs, disk.stepMs],
          waitedMs: disk.waitedMs,
          diskBoundMs: boundMs,
          losses: [memory.loss, disk.loss]
        }
      }
      yield {
        name: `model relative to the peak resident memory of the process, batch ${batch}`,
        value: bytes / disk.peakResident,
        unit: 'times',
        target: { least: 4 },
        details: { modelMB: bytes / 1e6, peakMB: disk.peakResident / 1e6, inMemoryPeakMB: memory.peakResident / 1e6 }
      }
      yield {
        name: `difference of the last losses, batch ${batch}`,
        value: disk.loss - memory.loss,
        unit: '',
        target: { most: 0 }
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function resultOf(run: StoreRun): Promise<StoreResult> {
  const child = fork(fileURLToPath(new URL('./l2l-store-alone.js', import.meta.url)), [JSON.stringify(run)])
  const [result] = (await once(child, 'message')) as [StoreResult]
  await once(child, 'exit')
  return result
}

/** Bytes per second, in pieces of the size of a layer's array. */
function bandwidth(folder: string): { readonly write: number; readonly read: number } {
  const piece = 2 ** 24
  const pieces = 128
  const { WebAssembly } = globalThis as unknown as {
    readonly WebAssembly: { readonly Memory: new (limits: { initial: number }) => { readonly buffer: ArrayBuffer } }
  }
  const bytes = new Uint8Array(new WebAssembly.Memory({ initial: piece / 2 ** 16 }).buffer).fill(7)
  const file = openLayers(folder, true)
  const rate = (work: (position: number) => void) => {
    const start = performance.now()
    for (let i = 0; i < pieces; i++) work(i * piece)
    fdatasyncSync(file)
    return (pieces * piece) / ((performance.now() - start) / 1000)
  }
  try {
    // The first pass allocates the file.
    rate(position => writeSync(file, bytes, 0, piece, position))
    const write = rate(position => writeSync(file, bytes, 0, piece, position))
    return { write, read: rate(position => readSync(file, bytes, 0, piece, position)) }
  } finally {
    closeSync(file)
    rmSync(join(folder, 'layers.bin'))
  }
}
