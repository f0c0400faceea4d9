/** Properties 1 (identity) and 2 (monotone): a predictor id identifies its content, and ids only increase. */
import { compareIds, formatId, type Predictor, type PredictorId } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learning/index.js'
import { Violation } from '../result.js'
import type { CheckedNode, Invariant, PredictorChange } from './invariant.js'

/** Equal ids imply bit-equal parameters, average and rule state, and every predictor is created exactly once. */
export class Identity implements Invariant {
  readonly #contents = new Map<string, number>()

  /** Starting predictors are not created by an update. */
  started({ node: { predictor } }: CheckedNode): void {
    const key = formatId(predictor.id)
    if (!this.#contents.has(key)) this.#contents.set(key, fingerprint(predictor))
  }

  predictorChanged({ origin, incarnation, nonce }: CheckedNode, { cause, predictor }: PredictorChange): void {
    const { id } = predictor
    const key = formatId(id)
    const content = fingerprint(predictor)
    const known = this.#contents.get(key)
    if (cause === 'updated') {
      if (id.origin !== origin || id.incarnation !== incarnation || id.nonce !== nonce)
        throw new Violation('identity', `${origin}#${incarnation} made ${key}, an id of another node`)
      if (known !== undefined) throw new Violation('identity', `${origin}#${incarnation} made ${key} a second time`)
      this.#contents.set(key, content)
    } else if (known === undefined) throw new Violation('identity', `${origin} ${cause} ${key}, which no node has made`)
    else if (known !== content) throw new Violation('identity', `${origin} ${cause} different content as ${key}`)
  }
}

/** Within an incarnation a node's predictor id strictly increases at each change, so that no abandoned predictor returns. */
export class Monotone implements Invariant {
  /** Current predictor of each node. */
  readonly #held: Predictor[] = []

  started({ index, node }: CheckedNode): void {
    this.#held[index] = node.predictor
  }

  predictorChanged({ index, origin }: CheckedNode, { cause, predictor }: PredictorChange): void {
    const { id } = this.#held[index]
    if (cause !== 'restored' && compareIds(predictor.id, id) <= 0)
      throw new Violation('monotone', `${origin} went from ${formatId(id)} to ${formatId(predictor.id)}`)
    this.#held[index] = predictor
  }

  afterEvent({ index, origin, node }: CheckedNode): void {
    if (node.predictor !== this.#held[index])
      throw new Violation('monotone', `${origin} changed to ${formatId(node.predictor.id)} without an effect`)
  }
}

/** Own inputs after which a gate may judge a refused predictor again; twice as many after each further refusal. */
const RETRY_INPUTS = 64

/**
 * A node does not adopt a predictor that its gate has refused, and does not judge it again, until it has learned some inputs. The
 * number doubles with each refusal, so that repetition gains nothing.
 */
export class Gated implements Invariant {
  readonly #refusals = new WeakMap<CheckedNode, Map<string, { count: number; inputs: number }>>()
  readonly #inputs = new WeakMap<CheckedNode, number>()

  learned(checked: CheckedNode, count: number): void {
    this.#inputs.set(checked, this.#inputsOf(checked) + count)
  }

  predictorRejected(checked: CheckedNode, { id }: Predictor): void {
    this.#check(checked, id, 'judged')
    const refusals = this.#refusals.get(checked) ?? new Map()
    const key = keyOf(id)
    const { count = 0 } = refusals.get(key) ?? {}
    this.#refusals.set(checked, refusals.set(key, { count: count + 1, inputs: this.#inputsOf(checked) }))
  }

  predictorChanged(checked: CheckedNode, { cause, predictor: { id } }: PredictorChange): void {
    if (cause === 'adopted') this.#check(checked, id, 'adopted')
  }

  #check(checked: CheckedNode, id: PredictorId, verb: string): void {
    const refused = this.#refusals.get(checked)?.get(keyOf(id))
    if (refused === undefined) return
    const since = this.#inputsOf(checked) - refused.inputs
    if (since < RETRY_INPUTS * 2 ** (refused.count - 1))
      throw new Violation(
        'gate',
        `${checked.origin} ${verb} ${formatId(id)}, which its gate has refused ${refused.count} times, ${since} inputs later`
      )
  }

  #inputsOf(checked: CheckedNode): number {
    return this.#inputs.get(checked) ?? 0
  }
}

function keyOf(id: PredictorId): string {
  return `${formatId(id)} ${id.digest}`
}

/**
 * A 53-bit hash of parameters, average and rule state: two parallel rounds of multiply and shift, as in the body of MurmurHash3.
 * It is independent of the digest that the algorithm uses.
 */
export function fingerprint({ parameters, average, state }: Predictor): number {
  let high = 0x2f0b4c47
  let low = 0x51ed270b
  const add = (blocks: Blocks) => {
    for (const block of blocks) {
      const words = new Uint32Array(block.buffer, block.byteOffset, block.length)
      for (let i = 0; i < words.length; i++) {
        low = Math.imul(low ^ words[i], 0xcc9e2d51)
        low ^= low >>> 15
        high = Math.imul(high ^ (words[i] + low), 0x1b873593)
        high ^= high >>> 13
      }
    }
  }
  add(parameters)
  add(average)
  add(state)
  return (high >>> 11) * 2 ** 32 + (low >>> 0)
}
