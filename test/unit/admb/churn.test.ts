/** Contributors that are no longer referenced are removed, however often peers restart. */
import assert from 'node:assert/strict'
import { AdmbNode } from '../../../src/admb/index.js'
import { ContributorTable } from '../../../src/admb/state/coverage.js'
import { toy, toyLayout, toyStart } from '../../support/toy.js'

const INPUTS = 8
const layout = toyLayout(INPUTS)
const initial = toyStart(INPUTS)

describe('contributors', () => {
  it('are removed if they are not retained, and their indices are assigned again', () => {
    const table = new ContributorTable()
    const run = (nonce: number) => ({ origin: 'a', incarnation: 1, nonce })
    const [first, second, third] = [1, 2, 3].map(nonce => table.indexOf(run(nonce)))
    table.retain(new Set([second]))
    assert.equal(table.size, 1)
    assert.deepEqual(table.contributor(second), run(2))
    assert.equal(table.indexOf(run(2)), second)
    assert.deepEqual([table.indexOf(run(9)), table.indexOf(run(1))].sort(), [first, third].sort())
    assert.equal(table.size, 3)
  })

  for (const batch of [20, 1e9])
    it(`of 1,000 restarts take bounded memory ${batch === 20 ? '' : 'and bounded frames, although no update follows'}`, () => {
      const network = new Churn(batch)
      const sizes: { contributors: number; frame: number; state: number }[] = []
      for (let round = 0; round < 4; round++) {
        network.pass(500)
        sizes.push(network.measure())
      }
      assert.equal(network.refused, 0)
      const [, before, , after] = sizes
      assert.ok(after.contributors <= 3 * before.contributors && after.contributors < 1200, JSON.stringify(sizes))
      assert.ok(after.frame < 2 * before.frame, JSON.stringify(sizes))
      assert.ok(after.state < 2 * before.state, JSON.stringify(sizes))
    })
})

/** A path of three nodes, of which the first restarts in every period. */
class Churn {
  readonly #batch: number
  readonly #nodes: AdmbNode[]
  #runs = 0
  refused = 0
  #largest = 0

  constructor(batch: number) {
    this.#batch = batch
    this.#nodes = ['a', 'b', 'c'].map(self => this.#create(self))
    this.#connect(1, 2)
  }

  #create(self: string): AdmbNode {
    const run = { incarnation: 1, nonce: this.#runs++ }
    return new AdmbNode({ ...toy, self, ...run, layout, initial, batch: this.#batch, carry: 9, lineage: 64 })
  }

  #connect(a: number, b: number): void {
    this.#nodes[a].connect(b, this.#runs, 'neighbour')
    this.#nodes[b].connect(a, this.#runs, 'neighbour')
  }

  #flush(): void {
    for (let round = 0; round < 4; round++) {
      for (const [from, to] of [
        [0, 1],
        [1, 0],
        [1, 2],
        [2, 1]
      ]) {
        const frame = this.#nodes[from].frame(to)
        if (frame === undefined) continue
        this.#largest = Math.max(this.#largest, frame.length)
        this.#nodes[to].receive(from, frame)
        for (const effect of this.#nodes[to].takeEffects()) if (effect.kind === 'refused') this.refused++
      }
    }
  }

  pass(restarts: number): void {
    this.#largest = 0
    for (let i = 0; i < restarts; i++) {
      this.#nodes[1].disconnect(0)
      this.#nodes[0] = this.#create('a')
      this.#connect(0, 1)
      for (let period = 0; period < 3; period++) {
        for (const node of this.#nodes) {
          node.accumulator[0][0] += 1
          node.added(1)
          node.tick()
          node.takeEffects()
        }
        this.#flush()
      }
    }
  }

  measure(): { contributors: number; frame: number; state: number } {
    const contributors = Math.max(...this.#nodes.map(node => node.inspect.contributors))
    return { contributors, frame: this.#largest, state: this.#nodes[1].storage.save().length }
  }
}
