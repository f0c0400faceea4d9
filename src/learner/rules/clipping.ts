/** Clipping of gradients by their norm, and weight decay, around a rule that steps blocks. */
import { copyBlock } from '../../base/memory.js'
import { stateBlockIndices } from '../blocks.js'
import type { BlockLayout, Blocks, Layout, RuleState, UpdateRule } from '../types.js'
import { type DividingRule, withPureStep } from './definition.js'

export interface Clipping {
  /** Factor of the weights in an update with `count` gradients, other than biases and norms. */
  shrink(updates: number, count: number): number
  /** Largest norm of the mean gradient over all blocks. @default no limit */
  readonly clip: number | undefined
  /** Largest norm of the mean gradient of each block. @default no limit */
  readonly layerClip: number | undefined
}

/** @param layout whose `vectors` do not decay @default all weights decay */
export function clippedAndDecayed(rule: DividingRule, clipping: Clipping, layout: Layout | undefined): UpdateRule {
  const decayed = (parameters: Blocks, updates: number, count: number): void => {
    const factor = clipping.shrink(updates, count)
    for (const [k, block] of parameters.entries()) decay(block, factor, layout?.blocks[k])
  }
  const { stepInPlace, squares, ...rest } = rule
  // With clipping, the state has squares of clipped gradients.
  const others = clipping.clip === undefined && clipping.layerClip === undefined ? { ...rest, squares } : rest
  if (stepInPlace !== undefined) {
    return withPureStep({
      ...others,
      stepInPlace(now, sum, count, updates) {
        decayed(now.parameters, updates, count)
        for (const { part, gradient, factor } of partsOf(rule, now, sum, count, clipping)) {
          stepInPlace(part, gradient, count, updates, count / factor)
        }
      }
    })
  }
  return {
    ...others,
    step(previous, sum, count, updates) {
      const now = { ...previous, parameters: previous.parameters.map(copyBlock) }
      decayed(now.parameters, updates, count)
      const state: Float32Array[] = previous.state.map(block => block)
      const parameters: Float32Array[] = []
      for (const { part, gradient, factor, positions } of partsOf(rule, now, sum, count, clipping)) {
        const stepped = rule.step(part, gradient, count, updates, 1, count / factor)
        parameters.push(...(stepped.parameters as Float32Array[]))
        for (const [i, position] of positions.entries()) state[position] = stepped.state[i] as Float32Array
      }
      return { parameters, state }
    }
  }
}

interface Part {
  readonly part: RuleState
  readonly gradient: Blocks
  /** Factor of the gradient, at most 1. */
  readonly factor: number
  /** Of the part's state in the whole state. */
  readonly positions: readonly number[]
}

/** All blocks at once, or one by one if each has its own factor. */
function partsOf(rule: UpdateRule, now: RuleState, sum: Blocks, count: number, { clip, layerClip }: Clipping): Part[] {
  const global = factorOf(sum, count, clip)
  if (layerClip === undefined) {
    return [{ part: now, gradient: sum, factor: global, positions: [...now.state.keys()] }]
  }
  const layout = { blocks: sum.map(({ length }, k) => ({ name: String(k), length })) }
  const last = sum.length - 1
  return stateBlockIndices(rule, layout).map((positions, k, all) => {
    // Counters, which all blocks share, advance once: the others step with copies.
    const isShared = (position: number) => k < last && all[last].includes(position)
    const state = positions.map(position => (isShared(position) ? now.state[position].slice() : now.state[position]))
    const part = { parameters: [now.parameters[k]], state }
    return { part, gradient: [sum[k]], factor: Math.min(global, factorOf([sum[k]], count, layerClip)), positions }
  })
}

/** Factor that shortens the mean gradient to the limit. */
function factorOf(sum: Blocks, count: number, limit: number | undefined): number {
  if (limit === undefined) return 1
  let squares = 0
  for (const block of sum) for (let i = 0; i < block.length; i++) squares += block[i] * block[i]
  const norm = Math.sqrt(squares) / count
  return norm > limit ? limit / norm : 1
}

function decay(block: Float32Array, factor: number, { vectors = [] }: Partial<BlockLayout> = {}): void {
  let from = 0
  for (const [start, end] of [...vectors, [block.length, block.length] as const]) {
    for (let i = from; i < start; i++) block[i] *= factor
    from = end
  }
}
