/** Entry of a param-server thread: steps layers whose gradients are there, in memory shared with the relay's thread. */
import { workerData } from 'node:worker_threads'
import { type AveragingSpec, createAveraging, createRule, type RuleSpec } from '../../learner/index.js'
import { type BlockMemory, stepBlock } from './block-step.js'
import { SharedSignals } from './shared-signals.js'

export interface ServerThreadData {
  readonly thread: number
  readonly threads: number
  readonly signals: SharedArrayBuffer
  readonly blocks: readonly BlockMemory[]
  readonly gradients: readonly Float32Array[]
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
}

const { thread, threads, signals: control, blocks, gradients, ...specs } = workerData as ServerThreadData
const rule = createRule(specs.rule)
const averaging = createAveraging(specs.averaging)
new SharedSignals(threads, blocks.length, control).serve(thread, (block, { slot, count, updates }) => {
  const memory = sharing(blocks[block])
  return stepBlock(memory, gradients[slot].subarray(0, memory.parameters.length), rule, averaging, count, updates)
})

/** Arrays over the same memory arrive as two. */
function sharing({ parameters, average, state }: BlockMemory): BlockMemory {
  return { parameters, average: average.buffer === parameters.buffer ? parameters : average, state }
}
