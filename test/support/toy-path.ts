/** Three nodes in a path, `a`, `b` and `c`, with the exact learner. */
import { AdmbNode, type AdmbOptions, type Effect, type Recipe, type Signer } from '../../src/admb/index.js'
import { addToyGradient, toy, toyLayout, toyStart } from './toy.js'

/** Periods of an exchange, in which everything arrives. */
const PERIODS = 8

interface ToyPathOptions {
  /** Number of different inputs. */
  readonly inputs: number
  readonly batch: number
  /** @default sums of float32 numbers */
  readonly recipe?: Recipe
  /** Further options of all nodes. @default none */
  readonly all?: Partial<AdmbOptions>
  /** Further options of the middle node. @default none */
  readonly middle?: Partial<AdmbOptions>
  /** @default no signatures */
  readonly signerOf?: (self: string) => Signer
}

export class ToyPath {
  readonly nodes: readonly AdmbNode[]
  /** Those of the middle node. */
  readonly effects: Effect[] = []

  constructor({ inputs, batch, recipe = toy, all, middle, signerOf }: ToyPathOptions) {
    const options = {
      ...recipe,
      incarnation: 1,
      layout: toyLayout(inputs),
      initial: toyStart(inputs, recipe),
      batch,
      ...all
    }
    this.nodes = ['a', 'b', 'c'].map(
      self => new AdmbNode({ ...options, self, signer: signerOf?.(self), ...(self === 'b' && middle) })
    )
    for (const [edge, one, other] of [
      [1, 0, 1],
      [2, 1, 2]
    ]) {
      this.nodes[one].connect(edge, edge, 'abc'[other])
      this.nodes[other].connect(edge, edge, 'abc'[one])
    }
    this.exchange()
  }

  /**
   * A node learns inputs from number `first` on, and the nodes exchange what they have.
   * @param elapsed periods that pass at the middle node, for its quota
   */
  learn(node: number, first: number, count = 1, elapsed = 0): void {
    for (let input = first; input < first + count; input++) addToyGradient(this.nodes[node].accumulator, input)
    this.nodes[node].added(count)
    this.exchange(elapsed)
  }

  exchange(elapsed = 0): void {
    const [a, b, c] = this.nodes
    for (let period = 0; period < PERIODS; period++) {
      for (const node of this.nodes) node.tick(node === b ? elapsed / PERIODS : 1)
      for (const [from, to, edge] of [
        [a, b, 1],
        [b, a, 1],
        [b, c, 2],
        [c, b, 2]
      ] as const)
        for (let frame = from.frame(edge); frame; frame = from.frame(edge)) to.receive(edge, frame)
      this.effects.push(...b.takeEffects())
    }
  }

  get kinds(): string[] {
    return this.effects.map(({ kind }) => kind)
  }
}
