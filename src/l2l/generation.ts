/**
 * Generates text with a model that predicts the next token. Keys and values of earlier positions are cached on the device, with
 * all weights, so a token costs one pass of one position.
 */
import * as tf from '#tfjs'
import { type Blocks, OptionError } from '../learning/index.js'
import { servingOrder } from '../nn/layer-order.js'
import { uniforms } from '../nn/random.js'
import type { Tokenizer } from '../nn/tokenizers/index.js'
import type { LayerCache, Model } from '../nn/types.js'
import { predictsNextToken } from './dense-rows.js'
import { deviceMeter, load } from './executor/step.js'
import { BlockStore } from './executor/types.js'

/** How the next token is drawn from its probabilities. */
export interface Sampling {
  /** Divides the logits; 0 takes the most probable token. @default 1 */
  readonly temperature?: number
  /** Draws from this many most probable tokens. @default all */
  readonly topK?: number
  /** Draws from the fewest most probable tokens whose probabilities add up to this. @default 1: all */
  readonly topP?: number
  /** @default 1 */
  readonly seed?: number
}

export class Generation {
  /** Largest number of tokens, the prompt included; infinite with rotary positions. */
  readonly limit: number
  readonly #model: Model
  readonly #order: readonly number[]
  readonly #weights: readonly (readonly tf.Tensor[])[]
  readonly #caches: readonly LayerCache[]
  #position = 0

  /**
   * Loads the weights to the device.
   * @param updates number of updates that made the parameters @default all layers take part
   * @throws OptionError for a model that does not predict the next token
   */
  constructor(model: Model, parameters: Blocks, updates = Number.POSITIVE_INFINITY) {
    if (!predictsNextToken(model))
      throw new OptionError(`the model ${model.name} does not generate text: give a language model`)
    const store = new BlockStore(model, parameters, [])
    const meter = deviceMeter()
    const order = servingOrder(model, updates)
    this.#model = model
    this.#order = order
    this.#weights = order.map(l => load({ model, store, meter }, l))
    this.#caches = order.map(() => ({ position: 0 }))
    const positions = model.layers[0].weights.find(({ name }) => name === 'positions')
    this.limit = positions?.shape[0] ?? Number.POSITIVE_INFINITY
  }

  /**
   * Appends tokens to the text so far, at most up to `limit`.
   * @returns the logits of the token after them
   */
  append(tokens: readonly number[]): Float32Array {
    const { layers, head } = this.#model
    const y = tf.tidy(() => {
      let x: tf.Tensor = tf.tensor2d(Int32Array.from(tokens), [1, tokens.length], 'int32')
      for (const [i, l] of this.#order.entries()) {
        const isLast = i === this.#order.length - 1
        // The scores of all tokens are large, and only those after the last position are needed.
        if (isLast) x = tf.slice(x, [0, tokens.length - 1, 0], [1, 1, -1])
        const cache = this.#caches[i]
        cache.position = this.#position
        x = layers[l].forward(x, this.#weights[i], { training: false, seed: 0, cache })
      }
      return x
    })
    this.#position += tokens.length
    const logits = Float32Array.from(y.dataSync())
    y.dispose()
    return logits.subarray(logits.length - (head.input.at(-1) as number))
  }

  /**
   * Yields up to `count` tokens after a prompt.
   * @throws OptionError if the prompt has no tokens, or more than `limit`
   */
  *tokens(prompt: readonly number[], count: number, sampling: Sampling = {}): Generator<number> {
    if (prompt.length === 0) throw new OptionError('the prompt has no tokens: give a longer one')
    if (prompt.length > this.limit) {
      throw new OptionError(`the prompt has ${prompt.length} tokens, and the model ${this.limit} positions: shorten it`)
    }
    const random = uniforms(sampling.seed ?? 1)
    let logits = this.append(prompt)
    for (let made = 0; made < count; made++) {
      const token = drawToken(logits, sampling, random)
      yield token
      if (made + 1 === count || this.#position === this.limit) return
      logits = this.append([token])
    }
  }

  close(): void {
    tf.dispose(this.#weights.flat())
    const caches = this.#caches.flatMap(cache => cache.parts ?? [cache])
    for (const { keys, values } of caches) tf.dispose([keys, values].filter(tensor => tensor !== undefined))
  }
}

/** The text of tokens as they are made. A character may take several tokens. */
export class TextReader {
  readonly #tokenizer: Tokenizer
  readonly #tokens: number[]
  readonly #start: number
  #read = 0

  constructor(tokenizer: Tokenizer, prompt: readonly number[]) {
    this.#tokenizer = tokenizer
    this.#tokens = [...prompt]
    this.#start = tokenizer.decode(prompt).length
  }

  /** All text after the prompt. */
  get text(): string {
    return this.#tokenizer.decode(this.#tokens).slice(this.#start)
  }

  /** @returns the text that the token completes; empty in the middle of a character */
  next(token: number): string {
    this.#tokens.push(token)
    // The bytes of an incomplete character are decoded to one U+FFFD.
    const complete = this.text.replace(/\ufffd$/, '')
    const piece = complete.slice(this.#read)
    this.#read = complete.length
    return piece
  }
}

/**
 * Draws a token: the logits are divided by the temperature, then top-k and top-p limit the choice, in this order (Holtzman et al.,
 * "The Curious Case of Neural Text Degeneration", 2020).
 * @param random uniform in [0, 1)
 */
export function drawToken(
  logits: Float32Array,
  { temperature = 1, topK = logits.length, topP = 1 }: Sampling,
  random: () => number
): number {
  const tokens = [...logits.keys()].sort((a, b) => logits[b] - logits[a] || a - b)
  if (temperature === 0) return tokens[0]
  const best = logits[tokens[0]]
  const candidates = tokens.slice(0, topK)
  const powers = candidates.map(token => Math.exp((logits[token] - best) / temperature))
  const total = powers.reduce((a, b) => a + b, 0)
  let kept = 0
  for (let sum = 0; kept < powers.length && (kept === 0 || sum < topP * total); kept++) sum += powers[kept]
  let rest = random() * powers.slice(0, kept).reduce((a, b) => a + b, 0)
  for (let i = 0; i < kept; i++) {
    rest -= powers[i]
    if (rest < 0) return candidates[i]
  }
  return candidates[kept - 1]
}
