/** Three nodes in a path, `a`, `b` and `c`, with the exact learner; tests give the middle one further options. */
import { AdmbNode, type AdmbOptions, type Effect } from '../../src/admb/index.js'
import { addToyGradient, toy, toyLayout, toyStart } from './toy.js'

/** Periods of an exchange, in which everything arrives. */
const PERIODS = 8

export class ToyPath {
  readonly nodes: readonly AdmbNode[]
  /** Those of the middle node. */
  readonly effects: Effect[] = []

  /** @param inputs number of different inputs */
  constructor(inputs: number, batch: number, middle: Partial<AdmbOptions>) {
    const options = { ...toy, incarnation: 1, layout: toyLayout(inputs), initial: toyStart(inputs), batch }
    this.nodes = ['a', 'b', 'c'].map(self => new AdmbNode({ ...options, self, ...(self === 'b' && middle) }))
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
