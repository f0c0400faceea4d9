/**
 * Blocks that a predictor carries after its weights: what peers decide together, such as the size of the next batch. Nodes add counts
 * or votes to the same block of their gradient sums, which are summed, carried over and covered like gradients. An update computes the
 * next block from them, so all nodes that replay the batch, or receive the predictor, have the same one.
 *
 * Rules see the weights alone, with all that they clip and measure. A carried block is never rounded, its sums are integers by
 * themselves, and its average is its newest value.
 */
import { type Grid, valuesOf } from '../../numeric/lattice.js'
import type { Averaging, Blocks, Layout, Learner, RuleState, UpdateRule } from '../types.js'

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
   * @param gradients sum of these gradients, for each block of the model
   * @param contributors number of nodes whose gradients are in the batch
   */
  next(
    before: Float32Array,
    added: Float32Array,
    count: number,
    gradients: () => Blocks,
    contributors?: number
  ): Float32Array
}

/** The place of a carried block among the blocks of a model, or the one after them. */
export function placeOf(name: string, { blocks }: Layout): number {
  const place = blocks.findIndex(block => block.name === name)
  return place < 0 ? blocks.length : place
}

/** The carried blocks of a model in their order; undefined where the model does without one. */
type Carried<Block> = readonly (Block | undefined)[]

/** The layout with those carried blocks that it lacks. */
export function carryingLayout(layout: Layout, carried: Carried<Pick<CarriedBlock, 'name' | 'length'>>): Layout {
  return carried.reduce<Layout>(({ blocks }, block) => {
    if (block === undefined || placeOf(block.name, { blocks }) < blocks.length) return { blocks }
    return { blocks: [...blocks, { name: block.name, length: block.length, isExact: true }] }
  }, layout)
}

interface Recipe {
  readonly rule: UpdateRule
  readonly averaging: Averaging
}

/** A model whose predictors carry these blocks after its own. */
export function carry<R extends Recipe, Parts extends { readonly learner: Learner; readonly recipe: R }>(
  parts: Parts,
  carried: Carried<CarriedBlock>
): Parts {
  const learner = carryingLearner(parts.learner, carried)
  return { ...parts, learner, recipe: carryingRecipe(parts.recipe, carried) }
}

/** A learner reads the carried blocks that its own layout contains. */
export function carryingLearner(learner: Learner, carried: Carried<CarriedBlock>): Learner {
  const { addGradient, scoreAndAdd, after, outputs, classifies, outcomeKind, rowMacs, markGradient } = learner
  const length = learner.layout.blocks.length
  const layout = carryingLayout(learner.layout, carried)
  if (layout.blocks.length === length) return learner
  const added = layout.blocks.slice(length).map(({ name }) => carried.find(block => block?.name === name))
  const own = (blocks: Blocks) => blocks.slice(0, length)
  return {
    layout,
    outputs,
    classifies,
    outcomeKind,
    rowMacs,
    markGradient,
    initial: () => [...learner.initial(), ...added.flatMap(block => block?.initial() ?? [])],
    score: (parameters, ...rows) => learner.score(own(parameters), ...rows),
    addGradient: (parameters, examples, from, to, sum) =>
      addGradient.call(learner, own(parameters), examples, from, to, own(sum)),
    scoreAndAdd:
      scoreAndAdd &&
      ((parameters, served, examples, from, to, sum, into) =>
        scoreAndAdd.call(learner, own(parameters), own(served), examples, from, to, own(sum), into)),
    predict: (parameters, ...rows) => learner.predict(own(parameters), ...rows),
    after: after && (updates => carryingLearner(after.call(learner, updates), carried))
  }
}

/** The rule and the average of parameters whose last blocks are carried. */
export function carryingRecipe<R extends Recipe>(recipe: R, carried: Carried<Pick<CarriedBlock, 'next'>>): R {
  const blocks = carried.filter(block => block !== undefined)
  if (blocks.length === 0) return recipe
  const { rule, averaging } = recipe
  const { name, description, isLocal, minWeight, grid } = rule
  const model = (all: Blocks) => all.slice(0, -blocks.length)
  const rest = (all: Blocks) => all.slice(-blocks.length)
  const ofModel = (layout: Layout): Layout => ({ blocks: layout.blocks.slice(0, -blocks.length) })
  const inner = ({ parameters, state }: RuleState): RuleState => ({ parameters: model(parameters), state })
  /** Callers compare grids by reference. */
  const grids = new WeakMap<Grid, Grid>()
  const withUnits = (of: Grid): Grid => {
    const created = grids.get(of) ?? [...of, ...blocks.map(() => UNIT)]
    grids.set(of, created)
    return created
  }
  const carrying: UpdateRule = {
    name,
    description,
    isLocal,
    minWeight,
    stateLayout: layout => rule.stateLayout(ofModel(layout)),
    step(previous, sum, count, updates, contributors) {
      const [before, gradients] = [inner(previous), model(sum)]
      const values = () => (grid ? valuesOf(gradients, grid(before, updates)) : gradients)
      const [now, added] = [rest(previous.parameters), rest(sum)]
      const next = blocks.map((block, k) => block.next(now[k], added[k], count, values, contributors))
      const { parameters, state } = rule.step(before, gradients, count, updates, contributors)
      return { parameters: [...parameters, ...next], state }
    },
    grid: grid && ((previous, updates) => withUnits(grid(inner(previous), updates)))
  }
  const { layout, contain, read, readElements } = averaging
  const copying: Averaging = {
    name: averaging.name,
    description: averaging.description,
    isLocal: averaging.isLocal,
    average: (previous, parameters, updates, before, least) => [
      ...averaging.average(model(previous), model(parameters), updates, model(before), least),
      ...rest(parameters)
    ],
    layout:
      layout && (given => ({ blocks: [...layout(ofModel(given)).blocks, ...given.blocks.slice(-blocks.length)] })),
    contain: contain && ((average, now) => [...contain(model(average), model(now)), ...rest(now)]),
    read: read && ((contained, now) => [...read(model(contained), model(now)), ...rest(now)]),
    readElements: readElements && ((contained, now, ...given) => readElements(model(contained), model(now), ...given))
  }
  return { ...recipe, rule: carrying, averaging: copying }
}

/** Exponent of the step 1. */
const UNIT = Int8Array.of(0)
