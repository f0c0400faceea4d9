/**
 * Blocks that a predictor carries after its weights: what peers decide together, such as the size of the next batch. Nodes add counts
 * or votes to the same block of their gradient sums, which are summed, carried over and covered like gradients. An update computes the
 * next block from them, so all nodes that replay the batch, or receive the predictor, have the same one.
 *
 * Rules see the weights alone, with all that they clip and measure. A carried block is never rounded, its sums are integers by
 * themselves, and its average is its newest value.
 */
import { type Grid, valuesOf } from '../../numeric/lattice.js'
import type { Averaging, BlockLayout, Blocks, Layout, Learner, RuleState, UpdateRule } from '../types.js'

/** A block that a predictor carries beside the parameters of its model, such as the size of batches. */
export interface CarriedBlock {
  readonly name: string
  readonly length: number
  /** The block of the first predictor. */
  initial(): Float32Array
  /**
   * The block after an update. Uses only + − × ÷ and square roots.
   * @param before it before the update
   * @param added what nodes have added to it in the sum of the batch
   * @param count number of gradients of the batch
   * @param gradients sum of these gradients, for each block before this one
   */
  next(before: Float32Array, added: Float32Array, count: number, gradients: () => Blocks): Float32Array
}

/** Layout of a carried block. */
export function layoutOf({ name, length }: Pick<CarriedBlock, 'name' | 'length'>): BlockLayout {
  return { name, length, isExact: true }
}

/** The place of a carried block among the blocks of a model, or the one after them. */
export function placeOf(name: string, { blocks }: Layout): number {
  const place = blocks.findIndex(block => block.name === name)
  return place < 0 ? blocks.length : place
}

interface Recipe {
  readonly rule: UpdateRule
  readonly averaging: Averaging
}

/** A model whose predictors carry a further block, its last one. */
export function carry<R extends Recipe, Parts extends { readonly learner: Learner; readonly recipe: R }>(
  parts: Parts,
  block: CarriedBlock
): Parts {
  return { ...parts, learner: carryingLearner(parts.learner, block), recipe: carryingRecipe(parts.recipe, block) }
}

const last = (blocks: Blocks) => blocks[blocks.length - 1]
const others = (blocks: Blocks) => blocks.slice(0, -1)
const ofOthers = ({ blocks }: Layout): Layout => ({ blocks: blocks.slice(0, -1) })

function carryingLearner(learner: Learner, block: CarriedBlock): Learner {
  const { addGradient, after, layout, outputs, classifies, outcomeKind, rowMacs, markGradient } = learner
  const own = (blocks: Blocks) => blocks.slice(0, layout.blocks.length)
  return {
    layout: { blocks: [...layout.blocks, layoutOf(block)] },
    outputs,
    classifies,
    outcomeKind,
    rowMacs,
    markGradient,
    initial: () => [...learner.initial(), block.initial()],
    score: (parameters, ...rows) => learner.score(own(parameters), ...rows),
    addGradient: (parameters, examples, from, to, sum) =>
      addGradient.call(learner, own(parameters), examples, from, to, own(sum)),
    predict: (parameters, ...rows) => learner.predict(own(parameters), ...rows),
    after: after && (updates => carryingLearner(after.call(learner, updates), block))
  }
}

/** The rule and the average of parameters whose last block is carried. */
export function carryingRecipe<R extends Recipe>(recipe: R, block: Pick<CarriedBlock, 'next'>): R {
  const { rule, averaging } = recipe
  const { name, description, isLocal, minWeight, grid } = rule
  const inner = ({ parameters, state }: RuleState): RuleState => ({ parameters: others(parameters), state })
  const carrying: UpdateRule = {
    name,
    description,
    isLocal,
    minWeight,
    stateLayout: layout => rule.stateLayout(ofOthers(layout)),
    step(previous, sum, count, updates, contributors) {
      const [before, gradients] = [inner(previous), others(sum)]
      const values = () => (grid ? valuesOf(gradients, grid(before, updates)) : gradients)
      const next = block.next(last(previous.parameters), last(sum), count, values)
      const { parameters, state } = rule.step(before, gradients, count, updates, contributors)
      return { parameters: [...parameters, next], state }
    },
    grid: grid && ((previous, updates) => withUnit(grid(inner(previous), updates)))
  }
  return { ...recipe, rule: carrying, averaging: copyingLast(averaging) }
}

/** Exponent of the step 1. */
const UNIT = Int8Array.of(0)
/** Callers compare grids by reference. */
const unitGrids = new WeakMap<Grid, Grid>()

/** The grid with a last block whose step is 1: the same object for the same grid. */
function withUnit(grid: Grid): Grid {
  const created = unitGrids.get(grid) ?? [...grid, UNIT]
  unitGrids.set(grid, created)
  return created
}

function copyingLast(averaging: Averaging): Averaging {
  const { name, description, isLocal, layout, contain, read, readElements } = averaging
  return {
    name,
    description,
    isLocal,
    average: (previous, parameters, updates, before, least) => [
      ...averaging.average(others(previous), others(parameters), updates, others(before), least),
      last(parameters)
    ],
    layout:
      layout && (given => ({ blocks: [...layout(ofOthers(given)).blocks, given.blocks[given.blocks.length - 1]] })),
    contain: contain && ((average, now) => [...contain(others(average), others(now)), last(now)]),
    read: read && ((contained, now) => [...read(others(contained), others(now)), last(now)]),
    readElements: readElements && ((contained, now, ...rest) => readElements(others(contained), others(now), ...rest))
  }
}
