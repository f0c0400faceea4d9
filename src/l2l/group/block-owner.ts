/** A worker that owns blocks of a partitioned network: it holds their weights, averages and optimizer state, and updates them. */
import {
  createAveraging,
  createRule,
  ruleOfLayer,
  type UpdateRule,
  type WeightedAveraging
} from '../../learning/index.js'
import { type BlockMemory, stepBlock } from '../training/block-memory.js'
import { bytesOf, copyOf, type ToPeer, type ToWorker } from './messages.js'

/** Handlers of events at an owner. */
export interface OwnerEvents {
  /** It holds some blocks. @param bytes of these blocks */
  holds(blocks: number, bytes: number): void
  /** A block has been updated. */
  executed(): void
}

interface OwnBlock extends BlockMemory {
  readonly rule: UpdateRule
  /** Weights, the average if there is one, and state. */
  readonly arrays: readonly Float32Array[]
}

type Hold = Extract<ToWorker, { readonly kind: 'hold' }>

export class BlockOwner {
  readonly #blocks: ReadonlyMap<number, OwnBlock>
  readonly #averaging: WeightedAveraging
  readonly #returnsWeights: boolean
  readonly #events: OwnerEvents
  readonly #send: (message: ToPeer, bytes?: readonly Uint8Array[]) => void

  constructor(
    { blocks, layout, lengths, rule, averaging, returnsWeights }: Hold,
    events: OwnerEvents,
    send: (message: ToPeer, bytes?: readonly Uint8Array[]) => void
  ) {
    this.#averaging = createAveraging(averaging)
    this.#returnsWeights = returnsWeights
    this.#events = events
    this.#send = send
    const own = blocks.map((block): [number, OwnBlock] => {
      const one = layout.blocks[block]
      // The thread of the device reads the weights.
      const arrays = lengths[block].map((length, n) =>
        n === 0 ? new Float32Array(new SharedArrayBuffer(4 * length)) : new Float32Array(length)
      )
      const [parameters, ...rest] = arrays
      const [average, ...state] = averaging.name === 'none' ? [parameters, ...rest] : rest
      return [
        block,
        { parameters, average, state, arrays, rule: createRule(ruleOfLayer(rule, one), { blocks: [one] }) }
      ]
    })
    this.#blocks = new Map(own)
    const bytes = own.flatMap(([, { arrays }]) => arrays).reduce((sum, { byteLength }) => sum + byteLength, 0)
    events.holds(blocks.length, bytes)
  }

  /** The weights of a block, in memory that threads share; undefined if it is elsewhere. */
  weightsOf(block: number): Float32Array | undefined {
    return this.#blocks.get(block)?.parameters
  }

  /** @throws RangeError if the message is about a block that is elsewhere, or has another length */
  receive(message: ToWorker, bytes: Uint8Array): void {
    if (message.kind === 'step') this.#step(message, bytes)
    else if (message.kind === 'read') {
      this.#send({ kind: 'copied' }, [copyOf(this.#blockOf(message).arrays[message.array])])
    } else if (message.kind === 'write') {
      bytesOf(this.#blockOf(message).arrays[message.array]).set(bytes)
      this.#send({ kind: 'copied' })
    }
  }

  #step({ block, count, updates }: Extract<ToWorker, { readonly kind: 'step' }>, bytes: Uint8Array): void {
    const own = this.#blockOf({ block })
    const gradient = new Float32Array(own.parameters.length)
    bytesOf(gradient).set(bytes)
    const isDropped = !stepBlock(own, gradient, own.rule, this.#averaging, count, updates)
    this.#send({ kind: 'stepped', block, isDropped }, this.#returnsWeights ? [copyOf(own.parameters)] : [])
    this.#events.executed()
  }

  #blockOf({ block }: { readonly block: number }): OwnBlock {
    const own = this.#blocks.get(block)
    if (own === undefined) throw new RangeError(`block ${block} is elsewhere`)
    return own
  }
}
