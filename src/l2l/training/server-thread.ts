/** Entry of a param-server thread: steps layers whose gradients are there, in memory shared with the relay's thread. */
import { workerData } from 'node:worker_threads'
import { type AveragingSpec, createAveraging, createRule, type RuleSpec } from '../../learner/index.js'
import { type BlockMemory, stepBlock } from './block-step.js'
import { Control } from './control.js'

export interface ServerThreadData {
  readonly thread: number
  readonly threads: number
  readonly control: SharedArrayBuffer
  readonly blocks: readonly BlockMemory[]
  readonly rule: RuleSpec
  readonly averaging: AveragingSpec
}

const { thread, threads, control, blocks, ...specs } = workerData as ServerThreadData
const rule = createRule(specs.rule)
const averaging = createAveraging(specs.averaging)
new Control(threads, blocks.length, control).serve(thread, (block, count, updates) =>
  stepBlock(blocks[block], rule, averaging, count, updates)
)
