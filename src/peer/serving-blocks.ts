/**
 * The predictor that serves predictions. A lazy average is read only at the features of the rows that are scored, so that an update
 * of a large sparse model costs nothing here.
 */
import type { AdmbNode, Predictor } from '../admb/index.js'
import { keepArrays } from '../admb/state/predictor.js'
import type { Averaging, Blocks, Examples, Learner } from '../learning/index.js'
import type { PeerPredictWith } from './thread-messages.js'

interface ServingOptions {
  readonly node: AdmbNode
  readonly averaging: Averaging
  readonly learner: Pick<Learner, 'outputs'>
  readonly predictWith: PeerPredictWith
}

export class ServingBlocks {
  readonly #options: ServingOptions
  /** Elements of a lazy average, of which those of the last rows are valid. */
  #elements = new Float32Array(0)
  /** The predictor of whose average all elements are valid. */
  #wholeOf: Predictor | undefined
  #ahead: Blocks | undefined

  constructor(options: ServingOptions) {
    this.#options = options
    this.update()
  }

  /** The node's state has changed. */
  update(): void {
    const { node, predictWith } = this.#options
    if (predictWith === 'ahead') this.#ahead = node.lookAhead()
  }

  /** All blocks, valid until the next event. */
  get whole(): Blocks {
    const { averaging } = this.#options
    const { parameters, average } = this.#options.node.predictor
    return this.#other ?? averaging.read?.(average, parameters) ?? average
  }

  /** All blocks, which later events do not change. */
  get lasting(): Blocks {
    const { averaging, node, predictWith } = this.#options
    const isKept = predictWith !== 'ahead' && averaging.read === undefined && node.predictor.shared === undefined
    if (isKept) keepArrays(node.predictor)
    return isKept ? this.whole : this.whole.map(block => block.slice())
  }

  /** Blocks for rows [from, to), valid until the next event: of the first one, the elements of other features are arbitrary. */
  forRows({ indices, offsets }: Examples, from: number, to: number): Blocks {
    const { averaging, learner, node } = this.#options
    const { outputs } = learner
    const { readElements } = averaging
    if (this.#other !== undefined || readElements === undefined || outputs === undefined) return this.whole
    const { parameters, average } = node.predictor
    const [{ length }, ...others] = parameters
    if (this.#elements.length !== length) this.#elements = new Float32Array(length)
    const { predictor } = node
    if (this.#wholeOf === predictor) return [this.#elements, ...others]
    const features = length / outputs
    if (offsets[to] - offsets[from] >= features) {
      readElements(average, parameters, 0, length, this.#elements)
      // Arrays that predictors share change with the next one.
      this.#wholeOf = predictor.shared === undefined ? predictor : undefined
      return [this.#elements, ...others]
    }
    this.#wholeOf = undefined
    for (let p = offsets[from]; p < offsets[to]; p++) {
      const first = indices[p] * outputs
      // The learner reports features out of range.
      if (indices[p] >>> 0 < features) readElements(average, parameters, first, first + outputs, this.#elements)
    }
    return [this.#elements, ...others]
  }

  /** Blocks other than the average. */
  get #other(): Blocks | undefined {
    const { node, predictWith } = this.#options
    return predictWith === 'current' ? node.predictor.parameters : this.#ahead
  }
}
