/**
 * The update of a predictor's content. If rule and average are local and a batch has few non-zero
 * elements, only these are stepped (`stepTouched`), by the same rule and average that step whole
 * blocks. So both ways give the same bits.
 */

import type {
  Averaging,
  Blocks,
  Content,
  Digest,
  IncrementalDigest,
  RoundedBlocks,
  UpdateRule
} from '../../learning/types.js'
import { copyBlock } from '../../numeric/memory.js'
import { roundChanged } from '../../numeric/numbers.js'
import { blocksOf, type Sum } from '../../numeric/sums.js'
import { gatherEach, stepTouched } from '../../numeric/touched.js'

/** A gradient sum and the number of gradients in it. With a grid, the sum consists of integers. */
export interface Batch {
  readonly sum: Sum
  readonly count: number
  /** Number of nodes whose gradients it contains; only rules with a grid need it. @default 1 */
  readonly contributorCount?: number
}

/** Computes the next predictor from a predictor and a batch; identical on every peer. */
export interface Recipe {
  readonly rule: UpdateRule
  readonly averaging: Averaging
  readonly digest: Digest
  /** @default none */
  readonly rounded?: RoundedBlocks
}

/** w ← rule(sum / count) and its average. @param updates number of updates before */
export function advance(before: Content, batch: Batch, updates: number, recipe: Recipe): Content {
  return advanceTouched(before, batch, updates, recipe) ?? step(before, blocksOf(batch.sum), batch, updates, recipe)
}

function step(
  before: Content,
  sum: Blocks,
  { count, contributorCount }: Omit<Batch, 'sum'>,
  updates: number,
  recipe: Recipe
): Content {
  const { rule, averaging, rounded } = recipe
  const { parameters, state } = rule.step(before, sum, count, updates, contributorCount)
  if (rounded) roundEach(parameters, before.parameters, rounded.parameters, updates)
  const average = averaging.average(before.average, parameters, updates, before.parameters, rule.leastWeight?.(state))
  if (rounded) {
    roundEach(average, before.average, rounded.average, updates)
    roundEach(state, before.state, rounded.state, updates)
  }
  return { parameters, average, state }
}

function roundEach(blocks: Blocks, before: Blocks, isRounded: readonly boolean[], updates: number): void {
  for (const [k, block] of blocks.entries()) if (isRounded[k]) roundChanged(block, before[k], updates)
}

type Groups = readonly [parameters: Blocks, average: Blocks, state: Blocks]

/** @returns undefined if the whole blocks must be stepped */
function advanceTouched(before: Content, batch: Batch, updates: number, recipe: Recipe): Content | undefined {
  if (!(recipe.rule.isLocal && recipe.averaging.isLocal)) return undefined
  const stepGroups = ([parameters, average, state]: Groups, sum: Blocks): Groups => {
    const next = step({ parameters, average, state }, sum, batch, updates, recipe)
    return [next.parameters, next.average, next.state]
  }
  const groups: Groups = [before.parameters, before.average, before.state]
  const touched = stepTouched(groups, batch.sum, stepGroups)
  if (touched === undefined) return undefined
  const shared = before instanceof SharedContent ? before : SharedContent.copyOf(before, touched.length)
  return shared.with(touched, touched.short)
}

/** The elements of blocks of this length at the indices, then ones. Shorter blocks are copied. */
export function gathered({ parameters, average, state }: Content, length: number, indices: Int32Array): Content {
  return {
    parameters: gatherEach(parameters, length, indices, 1),
    average: gatherEach(average, length, indices, 1),
    state: gatherEach(state, length, indices, 1)
  }
}

/** Elements of all long blocks. */
export interface Elements {
  /** Indices of the elements, in ascending order. */
  readonly indices: Int32Array
  /** Elements at the indices, for each long block. */
  readonly values: readonly Float32Array[]
}

/** Long blocks that several contents share. */
class Shared {
  /** The long blocks of parameters, average and state. */
  readonly blocks: Blocks
  #digests: { readonly digest: Digest; readonly incremental: IncrementalDigest } | undefined
  /** Indices that have changed since the last digest. */
  #changed: Int32Array[] = []

  constructor(blocks: Blocks) {
    this.blocks = blocks
  }

  /** Sets elements. @returns the elements before */
  exchange({ indices, values }: Elements): Elements {
    const before = this.blocks.map((block, b) => {
      const next = values[b]
      const old = new Float32Array(indices.length)
      for (let n = 0; n < old.length; n++) {
        const i = indices[n]
        old[n] = block[i]
        block[i] = next[n]
      }
      return old
    })
    if (this.#digests) this.#changed.push(indices)
    return { indices, values: before }
  }

  digest(digest: Digest, groups: readonly Blocks[]): string {
    const { incremental } = digest
    if (incremental === undefined) return digest(groups)
    if (this.#digests?.digest !== digest) this.#digests = { digest, incremental: incremental(groups) }
    else if (this.#changed.length > 0) this.#digests.incremental.changed(this.blocks[0].length, union(this.#changed))
    this.#changed = []
    return this.#digests.incremental.of(groups)
  }
}

interface Link {
  readonly content: SharedContent
  readonly elements: Elements
}

/**
 * Contents of successive predictors that differ in a few elements and share the arrays of their
 * long blocks. The arrays have the elements of one of them; each other one has the elements that
 * differ, and a link towards it. Reading a content first makes it the one that the arrays have
 * (Baker, "Shallow binding in Lisp 1.5", 1978). So a content is immutable, but its blocks are valid
 * only until another content is read or created.
 */
export class SharedContent implements Content {
  readonly #shared: Shared
  readonly #groups: readonly [parameters: Blocks, average: Blocks, state: Blocks]
  /** The next content on the way to that of the arrays, and the elements that differ from it. */
  #towards: Link | undefined

  private constructor(shared: Shared, groups: readonly [Blocks, Blocks, Blocks]) {
    this.#shared = shared
    this.#groups = groups
  }

  /** A content with copies of the blocks of this length. */
  static copyOf({ parameters, average, state }: Content, length: number): SharedContent {
    const blocks: Float32Array[] = []
    const copied = (group: Blocks) =>
      group.map(block => {
        if (block.length !== length) return block
        const copy = copyBlock(block)
        blocks.push(copy)
        return copy
      })
    const groups = [copied(parameters), copied(average), copied(state)] as const
    return new SharedContent(new Shared(blocks), groups)
  }

  /**
   * A content that differs from this one in some elements.
   * @param short blocks of other lengths than the long ones, in the order of parameters, average
   * and state
   */
  with(elements: Elements, short: Blocks): SharedContent {
    this.#read()
    const { blocks } = this.#shared
    const { length } = blocks[0]
    let next = 0
    const replaced = (group: Blocks) => group.map(block => (block.length === length ? block : short[next++]))
    const [parameters, average, state] = this.#groups
    const content = new SharedContent(this.#shared, [replaced(parameters), replaced(average), replaced(state)])
    this.#towards = { content, elements: this.#shared.exchange(elements) }
    return content
  }

  /** Length of the long blocks. */
  get length(): number {
    return this.#shared.blocks[0].length
  }

  get parameters(): Blocks {
    this.#read()
    return this.#groups[0]
  }

  get average(): Blocks {
    this.#read()
    return this.#groups[1]
  }

  get state(): Blocks {
    this.#read()
    return this.#groups[2]
  }

  digest(digest: Digest): string {
    this.#read()
    return this.#shared.digest(digest, this.#groups)
  }

  /** Gives the arrays the elements of this content. */
  #read(): void {
    const way: SharedContent[] = []
    let at: SharedContent = this
    for (let { content } = at.#towards ?? {}; content; content = at.#towards?.content) {
      way.push(at)
      at = content
    }
    for (const content of way.reverse()) {
      const { elements } = content.#towards as Link
      at.#towards = { content, elements: this.#shared.exchange(elements) }
      content.#towards = undefined
      at = content
    }
  }
}

/** The distinct numbers of ascending lists, in ascending order. */
function union(lists: readonly Int32Array[]): Int32Array {
  if (lists.length === 1) return lists[0]
  const all = new Int32Array(lists.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const list of lists) {
    all.set(list, at)
    at += list.length
  }
  return all.sort()
}
