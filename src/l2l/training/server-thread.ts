/**
 * Entry point of a parameter server thread: updates layers whose gradients were pushed, in memory shared with the
 * executor's thread.
 */
import { workerData } from 'node:worker_threads'
import {
  type AveragingSpec,
  createAveraging,
  createRule,
  type Layout,
  type RuleSpec,
  ruleOfLayer
} from '../../learning/index.js'
import type { SharedMemory } from '../../numeric/wasm-memory.js'
import { type PlacesData, SharedPlaces } from '../store/arena.js'
import { ALONE, addDevices } from '../workers/device-sums.js'
import type { DeviceMemory } from '../workers/worker-handle.js'
import { type BlockMemory, enterServerMemory, stepBlock } from './block-memory.js'
import { type Posted, SharedSignals } from './shared-signals.js'

export interface ServerThreadData {
  readonly thread: number
  readonly threads: number
  readonly signals: SharedArrayBuffer
  /** In memory, or places in the memory of a layer file. */
  readonly blocks: readonly BlockMemory[] | PlacesData
  readonly gradients: readonly Float32Array[]
  /** In which all of these arrays are; undefined if the kernels copy. */
  readonly memory: SharedMemory | undefined
  readonly rule: RuleSpec
  /** Layout of the parameters. */
  readonly layout: Layout
  readonly averaging: AveragingSpec
  /** Whether another process updates a block, by block. @default none */
  readonly elsewhere?: readonly boolean[]
  /** Memory of devices whose gradients are summed here. @default there are none */
  readonly devices: DeviceMemory | undefined
}

const { thread, threads, signals, blocks, gradients: slots, memory, devices, ...specs } = workerData as ServerThreadData
const rules = specs.layout.blocks.map(block => createRule(ruleOfLayer(specs.rule, block), { blocks: [block] }))
const averaging = createAveraging(specs.averaging)
enterServerMemory(memory, thread)
const gradients = slots.map(inServerMemory)
const places = 'table' in blocks ? new SharedPlaces(blocks) : undefined
const memoryOf = (block: number) => places?.block(block) ?? restoreAliasing((blocks as BlockMemory[])[block])
const step = (block: number, { slot, count, updates, number }: Posted) => {
  const memory = memoryOf(block)
  const gradient = gradients[slot].subarray(0, memory.parameters.length)
  if (devices && number !== ALONE && !addDevices(devices, number, gradient)) return true
  return stepBlock(memory, gradient, rules[block], averaging, count, updates)
}
new SharedSignals(threads, rules.length, signals).serve(thread, step, block => specs.elsewhere?.[block] === true)

/** Restores the identity of `average` and `parameters`, which structured cloning loses. */
function restoreAliasing({ parameters, average, state }: BlockMemory): BlockMemory {
  const isSame = average.buffer === parameters.buffer && average.byteOffset === parameters.byteOffset
  const there = inServerMemory(parameters)
  return { parameters: there, average: isSame ? there : inServerMemory(average), state: state.map(inServerMemory) }
}

/** Structured cloning loses that the buffer is that of the memory. */
function inServerMemory(array: Float32Array): Float32Array {
  return memory === undefined ? array : new Float32Array(memory.buffer, array.byteOffset, array.length)
}
